-- Where the values of a RAID group's slow drive-days stand among those of the other drive-days of the same model, and the other way round.
-- Grain: kind, model, attribute, measure, raid_group_id.
with counted_values as (
    select
        kind, model, attribute, measure, value, raid_group_id,
        count(case when is_slow then 1 end) as slow_count,
        count(case when not is_slow then 1 end) as other_count
    from {{ ref('int_health__values') }}
    group by kind, model, attribute, measure, value, raid_group_id
),

by_value as (
    select
        kind, model, attribute, measure, value,
        cast(sum(slow_count) as bigint) as slow_count,
        cast(sum(other_count) as bigint) as other_count
    from counted_values
    group by kind, model, attribute, measure, value
),

drives as (
    select kind, model, attribute, measure, count(distinct drive_id) as slow_drive_count
    from {{ ref('int_health__values') }}
    where is_slow
    group by kind, model, attribute, measure
),

-- a tie counts half
ranked_values as (
    select
        *,
        sum(slow_count) over (partition by kind, model, attribute, measure) as slow_total,
        sum(other_count) over (partition by kind, model, attribute, measure) as other_total,
        sum(other_count) over (partition by kind, model, attribute, measure order by value) - other_count / 2.0 as others_below,
        sum(slow_count) over (partition by kind, model, attribute, measure order by value desc) - slow_count / 2.0 as slow_above,
        count(*) over (partition by kind, model, attribute, measure) as value_count,
        -- of any drive-day's place among all from 0 to 1: a twelfth, less for ties
        (1 - sum(power(slow_count + other_count, 3)) over (partition by kind, model, attribute, measure)
        / power(sum(slow_count + other_count) over (partition by kind, model, attribute, measure), 3)) / 12 as place_variance
    from by_value
)

select
    counted_values.kind, counted_values.model, counted_values.attribute, counted_values.measure, counted_values.raid_group_id,
    cast(max(ranked_values.slow_total) as bigint) as model_slow_days,
    cast(max(ranked_values.other_total) as bigint) as model_other_days,
    max(drives.slow_drive_count) as model_slow_drives,
    max(ranked_values.value_count) as model_value_count,
    max(ranked_values.place_variance) as model_place_variance,
    cast(sum(counted_values.slow_count) as bigint) as slow_days,
    cast(sum(counted_values.other_count) as bigint) as other_days,
    -- summed over the drive-days: the share of the other drive-days that is below, and of the slow ones that is above
    cast(sum(counted_values.slow_count * ranked_values.others_below) as double) / max(ranked_values.other_total) as slow_placement,
    cast(sum(counted_values.other_count * ranked_values.slow_above) as double) / max(ranked_values.slow_total) as other_placement
from counted_values
inner join ranked_values
    on counted_values.kind = ranked_values.kind
    and counted_values.model = ranked_values.model
    and counted_values.attribute = ranked_values.attribute
    and counted_values.measure = ranked_values.measure
    and counted_values.value = ranked_values.value
inner join drives
    on counted_values.kind = drives.kind
    and counted_values.model = drives.model
    and counted_values.attribute = drives.attribute
    and counted_values.measure = drives.measure
where ranked_values.slow_total > 0 and ranked_values.other_total > 0
group by counted_values.kind, counted_values.model, counted_values.attribute, counted_values.measure, counted_values.raid_group_id
