{{ config(meta={'made': 'each_day'}) }}
-- How much of each RAID group's day could be measured, hour by hour of its width, and how slow it was. RAID-hours with a row. Grain: raid_group_id, day_utc.
with raid_hours as (
    select
        raid_group_id, day_utc,
        count(*) as reported_raid_hours,
        count(case when is_valid then 1 end) as raid_hours,
        count(case when is_tail_hour then 1 end) as tail_hours,
        cast(sum(data_drive_count) as bigint) as expected_drive_hours
    from {{ ref('int_raid_hours') }}
    where data_drive_count >= {{ var('min_group_width') }}
    group by raid_group_id, day_utc
),

outcomes as (
    select
        raid_group_id, day_utc,
        cast(sum(reported_hours) as bigint) as reported_drive_hours,
        cast(sum(slowdown_hours) as bigint) as drive_hours,
        cast(sum(slow_hours) as bigint) as slow_drive_hours
    from {{ ref('int_drive_days__outcomes') }}
    group by raid_group_id, day_utc
)

select
    raid_hours.raid_group_id, raid_hours.day_utc,
    coalesce(kinds.kind, 'unknown') as kind,
    raid_hours.expected_drive_hours,
    coalesce(outcomes.reported_drive_hours, 0) as reported_drive_hours,
    cast(coalesce(outcomes.reported_drive_hours, 0) as double) / raid_hours.expected_drive_hours as reported_ratio,
    coalesce(outcomes.drive_hours, 0) as drive_hours,
    cast(coalesce(outcomes.drive_hours, 0) as double) / raid_hours.expected_drive_hours as measured_ratio,
    coalesce(outcomes.slow_drive_hours, 0) as slow_drive_hours,
    raid_hours.reported_raid_hours, raid_hours.raid_hours, raid_hours.tail_hours
from raid_hours
left join outcomes on raid_hours.raid_group_id = outcomes.raid_group_id and raid_hours.day_utc = outcomes.day_utc
left join {{ ref('int_raid_groups__kinds') }} as kinds on raid_hours.raid_group_id = kinds.raid_group_id
