-- The whole fleet in an ISO week (UTC), and how few drives its tail hours come from. Grain: week_utc.
with fleet_weeks as (
    select
        week_utc,
        cast(sum(drive_count) as bigint) as drive_count,
        cast(sum(raid_group_count) as bigint) as raid_group_count,
        cast(sum(drive_hours) as bigint) as drive_hours,
        cast(sum(slow_drive_hours) as bigint) as slow_drive_hours,
        cast(sum(slow_drive_count) as bigint) as slow_drive_count,
        cast(sum(raid_hours) as bigint) as raid_hours,
        cast(sum(tail_hours) as bigint) as tail_hours,
        cast(sum(tail_raid_group_count) as bigint) as tail_raid_group_count
    from {{ ref('fct_weekly_slowness') }}
    group by week_utc
),

halves as (
    -- the first rank at which the drives before and at it reach half of all tail hours
    select week_utc, min(cost_rank) as half_tail_drive_count
    from {{ ref('fct_weekly_drives') }}
    where cumulative_tail_hour_share >= 0.5
    group by week_utc
)

select
    fleet_weeks.week_utc,
    fleet_weeks.drive_count,
    fleet_weeks.raid_group_count,
    fleet_weeks.drive_hours,
    fleet_weeks.slow_drive_hours,
    cast(fleet_weeks.slow_drive_hours as double) / nullif(fleet_weeks.drive_hours, 0) as slow_drive_hour_ratio,
    fleet_weeks.slow_drive_count,
    fleet_weeks.raid_hours,
    fleet_weeks.tail_hours,
    cast(fleet_weeks.tail_hours as double) / nullif(fleet_weeks.raid_hours, 0) as tail_hour_ratio,
    fleet_weeks.tail_raid_group_count,
    coalesce(halves.half_tail_drive_count, 0) as half_tail_drive_count
from fleet_weeks
left join halves on fleet_weeks.week_utc = halves.week_utc
