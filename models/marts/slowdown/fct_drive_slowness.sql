-- How slow each drive is: over all its hours, and over the last weeks of its RAID group. Grain: drive_id.
with drive_hours as (
    select drive_id, hour_utc, slowdown from {{ ref('int_drive_hours') }} where slowdown is not null
    union all
    select drive_id, hour_utc, slowdown from {{ source('plan', 'pruned_drive_hours') }}
),

totals as (
    select * from {{ ref('int_drives__totals') }}
),

last_hours as (
    select raid_group_id, max(hour_utc) as last_hour_utc
    from {{ ref('int_raid_hours') }}
    where is_valid
    group by raid_group_id
),

windows as (
    select
        last_hours.raid_group_id,
        last_hours.last_hour_utc,
        count(*) as raid_hours
    from last_hours
    inner join {{ ref('int_raid_hours') }} as raid_hours
        on last_hours.raid_group_id = raid_hours.raid_group_id
        and raid_hours.hour_utc > last_hours.last_hour_utc - interval {{ var('chronic_window_days') }} day
    where raid_hours.is_valid
    group by last_hours.raid_group_id, last_hours.last_hour_utc
),

drive_windows as (
    select
        drives.drive_id,
        windows.raid_hours,
        count(*) as window_drive_hours,
        median(drive_hours.slowdown) as median_slowdown
    from {{ ref('dim_drives') }} as drives
    inner join windows on drives.current_raid_group_id = windows.raid_group_id
    inner join drive_hours
        on drives.drive_id = drive_hours.drive_id
        and drive_hours.hour_utc > windows.last_hour_utc - interval {{ var('chronic_window_days') }} day
        and drive_hours.hour_utc <= windows.last_hour_utc
    group by drives.drive_id, windows.raid_hours
)

select
    totals.drive_id,
    drives.kind,
    totals.drive_hours,
    totals.slow_hours,
    totals.interval_count,
    totals.max_slowdown,
    totals.slow_hours > 0 as is_acute,
    coalesce(drive_windows.window_drive_hours, 0) as window_drive_hours,
    drive_windows.median_slowdown,
    coalesce(
        drive_windows.median_slowdown >= {{ var('chronic_slowdown') }}
        and 2 * drive_windows.window_drive_hours >= drive_windows.raid_hours,
        false
    ) as is_chronic
from totals
left join drive_windows on totals.drive_id = drive_windows.drive_id
inner join {{ ref('dim_drives') }} as drives on totals.drive_id = drives.drive_id
