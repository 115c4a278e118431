-- How slow each drive is: over all its hours, and over the last weeks of its RAID group. Grain: drive_id.
with drive_windows as (
    select
        windows.drive_id, windows.raid_hours,
        count(*) as window_drive_hours,
        {{ median_of_group('drive_hours.slowdown') }} as median_slowdown
    from {{ ref('int_drives__windows') }} as windows
    inner join {{ ref('int_drive_hours') }} as drive_hours
        on windows.drive_id = drive_hours.drive_id
        and drive_hours.hour_utc > windows.after_hour_utc
        and drive_hours.hour_utc <= windows.last_hour_utc
    where drive_hours.slowdown is not null
    group by windows.drive_id, windows.raid_hours
),

totals as (
    select totals.*, drives.kind
    from {{ ref('int_drives__totals') }} as totals
    inner join {{ ref('int_drives') }} as drives on totals.drive_id = drives.drive_id
)

-- the windows come last, a row for each drive: who asks for none of their columns does not wait for their medians
select
    totals.drive_id, totals.kind, totals.drive_hours, totals.slow_hours, totals.interval_count, totals.max_slowdown,
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
