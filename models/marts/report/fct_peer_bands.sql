{{ config(meta={'by_week': {'column': 'hour_utc'}}) }}
-- Where the drives of a RAID group lay in each hour: the band a slow drive stands out from. Of the RAID groups in which one of the week's
-- `action_costliest_drives` costliest drives reported: of all there would be as many rows as RAID-hours. Grain: raid_group_id, hour_utc.
with drive_hours as (
    select
        drive_id, raid_group_id, hour_utc, slowdown,
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc
    from {{ ref('fct_drive_hours') }}
    where slowdown is not null
),

costliest_drives as (
    select week_utc, drive_id from {{ ref('fct_weekly_drives') }} where cost_rank <= {{ var('action_costliest_drives') }}
),

raid_groups as (
    select distinct days.week_utc, days.raid_group_id
    from {{ ref('int_drive_days__outcomes') }} as days
    inner join costliest_drives on days.week_utc = costliest_drives.week_utc and days.drive_id = costliest_drives.drive_id
)

select
    drive_hours.raid_group_id, drive_hours.hour_utc,
    min(drive_hours.slowdown) as lowest_slowdown,
    percentile_cont(0.25) within group (order by drive_hours.slowdown) as lower_quartile_slowdown,
    percentile_cont(0.75) within group (order by drive_hours.slowdown) as upper_quartile_slowdown,
    max(drive_hours.slowdown) as highest_slowdown
from drive_hours
inner join raid_groups on drive_hours.week_utc = raid_groups.week_utc and drive_hours.raid_group_id = raid_groups.raid_group_id
-- said twice: an engine puts a semi-join below the outer join of fct_drive_hours, and leaves an inner join above it
where drive_hours.raid_group_id in (select costly.raid_group_id from raid_groups as costly)
group by drive_hours.raid_group_id, drive_hours.hour_utc
