-- How well each rule foretold within a horizon of a week boundary whether a slow interval of a drive begins: the Brier score over all boundaries, beside that
-- of the base rate and that of `slow in the last 28 days`. Grain: kind, horizon_days, rule.
with groups as (
    select
        kind,
        horizon_days,
        rule,
        raid_group_id,
        sum(drive_count) as forecast_count,
        sum(slow_count) as slow_count,
        -- squared errors, in billionths so that they add up in any order
        sum(
            cast(round(1000000000 * (slow_count * power(1 - slow_probability, 2) + (drive_count - slow_count) * power(slow_probability, 2))) as bigint)
        ) as error_billionths
    from {{ ref('int_raid_groups__forecasts') }}
    group by kind, horizon_days, rule, raid_group_id
),

boundaries as (
    select kind, horizon_days, rule, count(distinct week_no) as boundary_count
    from {{ ref('int_raid_groups__forecasts') }}
    group by kind, horizon_days, rule
),

totals as (
    select
        kind,
        horizon_days,
        rule,
        cast(sum(forecast_count) as bigint) as forecast_count,
        cast(sum(slow_count) as bigint) as slow_count,
        cast(sum(error_billionths) as double) / 1000000000.0 as squared_error
    from groups
    group by kind, horizon_days, rule
),

gains as (
    select
        groups.kind,
        groups.horizon_days,
        groups.rule,
        groups.raid_group_id,
        simple.error_billionths - groups.error_billionths as gain_billionths
    from groups
    inner join groups as simple
        on groups.kind = simple.kind and groups.horizon_days = simple.horizon_days and groups.raid_group_id = simple.raid_group_id
    where simple.rule = 'slow_28d' and groups.rule <> 'slow_28d'
),

ends as (
    {{ bootstrap_gains('gains', ['kind', 'horizon_days', 'rule'], 'gain_billionths', '1000000000.0') }}
)

select
    totals.kind,
    totals.horizon_days,
    totals.rule,
    boundaries.boundary_count,
    totals.forecast_count,
    totals.slow_count,
    totals.squared_error / totals.forecast_count as brier_score,
    1 - totals.squared_error / nullif(base.squared_error, 0) as skill_ratio,
    (simple.squared_error - totals.squared_error) / totals.forecast_count as gain,
    coalesce(ends.gain_low, 0.0) / totals.forecast_count as gain_low,
    coalesce(ends.gain_high, 0.0) / totals.forecast_count as gain_high,
    case
        when ends.gain_low > 0 then 'gains'
        when ends.gain_high < 0 then 'loses'
        when totals.rule <> 'slow_28d' then 'open'
    end as verdict
from totals
inner join boundaries
    on totals.kind = boundaries.kind and totals.horizon_days = boundaries.horizon_days and totals.rule = boundaries.rule
inner join totals as base
    on totals.kind = base.kind and totals.horizon_days = base.horizon_days and base.rule = 'base_rate'
inner join totals as simple
    on totals.kind = simple.kind and totals.horizon_days = simple.horizon_days and simple.rule = 'slow_28d'
left join ends
    on totals.kind = ends.kind and totals.horizon_days = ends.horizon_days and totals.rule = ends.rule
