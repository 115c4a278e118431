-- How much greater a number of a slow drive-day is than that of another drive-day of the same model: of each model, and of all models of a kind
-- together (scope `all`). Grain: kind, scope, model, attribute, measure.
with scoped_placements as (
    select 'model' as scope, model as scope_model, * from {{ ref('int_health__placements') }}
    union all
    select 'all' as scope, '' as scope_model, * from {{ ref('int_health__placements') }}
),

totals as (
    select
        kind, scope, scope_model, attribute, measure,
        cast(sum(slow_days) as bigint) as slow_drive_days,
        cast(sum(other_days) as bigint) as other_drive_days,
        count(distinct case when slow_days > 0 then raid_group_id end) as slow_raid_groups,
        max(model_value_count) > 1 as is_varying,
        sum(slow_placement) / sum(slow_days) as share_below
    from scoped_placements
    group by kind, scope, scope_model, attribute, measure
),

of_models as (
    select
        kind, model, attribute, measure,
        sum(other_placement) / sum(other_days) as share_above,
        max(model_slow_days) as slow_days,
        -- of share_below, were slow drives drawn by chance
        max(model_place_variance) / max(model_slow_drives) as chance_variance
    from {{ ref('int_health__placements') }}
    group by kind, model, attribute, measure
),

chances as (
    select kind, 'model' as scope, model as scope_model, attribute, measure, chance_variance
    from of_models
    union all
    select
        kind,
        'all' as scope,
        '' as scope_model,
        attribute, measure,
        sum(power(slow_days, 2) * chance_variance) / power(sum(slow_days), 2) as chance_variance
    from of_models
    group by kind, attribute, measure
),

-- what each RAID group adds to share_below beyond its part: hours and drives of one group are not independent
influences as (
    select
        scoped_placements.kind, scoped_placements.scope, scoped_placements.scope_model, scoped_placements.attribute, scoped_placements.measure, scoped_placements.raid_group_id,
        sum(
            scoped_placements.slow_placement - scoped_placements.slow_days * totals.share_below
            + cast(scoped_placements.model_slow_days as double) / scoped_placements.model_other_days
            * (scoped_placements.other_placement - scoped_placements.other_days * of_models.share_above)
        ) / max(totals.slow_drive_days) as influence
    from scoped_placements
    inner join totals
        on scoped_placements.kind = totals.kind
        and scoped_placements.scope = totals.scope
        and scoped_placements.scope_model = totals.scope_model
        and scoped_placements.attribute = totals.attribute
        and scoped_placements.measure = totals.measure
    inner join of_models
        on scoped_placements.kind = of_models.kind
        and scoped_placements.model = of_models.model
        and scoped_placements.attribute = of_models.attribute
        and scoped_placements.measure = of_models.measure
    group by scoped_placements.kind, scoped_placements.scope, scoped_placements.scope_model, scoped_placements.attribute, scoped_placements.measure, scoped_placements.raid_group_id
),

errors as (
    select kind, scope, scope_model, attribute, measure, sum(power(influence, 2)) as squared_influence
    from influences
    group by kind, scope, scope_model, attribute, measure
)

select
    totals.kind, totals.scope,
    nullif(totals.scope_model, '') as model,
    totals.attribute, totals.measure, totals.slow_drive_days, totals.other_drive_days, totals.slow_raid_groups,
    2 * totals.share_below - 1 as effect,
    case
        when totals.slow_raid_groups >= {{ var('health_fewest_raid_groups') }} and totals.is_varying
            -- a rare value that no slow drive has by chance makes no RAID group differ: then it is as uncertain as chance is
            then 2 * sqrt(greatest(errors.squared_influence * totals.slow_raid_groups / (totals.slow_raid_groups - 1.0), chances.chance_variance))
    end as effect_error
from totals
inner join errors
    on totals.kind = errors.kind
    and totals.scope = errors.scope
    and totals.scope_model = errors.scope_model
    and totals.attribute = errors.attribute
    and totals.measure = errors.measure
inner join chances
    on totals.kind = chances.kind
    and totals.scope = chances.scope
    and totals.scope_model = chances.scope_model
    and totals.attribute = chances.attribute
    and totals.measure = chances.measure
