-- How slow each drive is: over all its hours, and over the last weeks of its RAID group. Grain: drive_id.
select
    totals.drive_id, drives.kind, totals.drive_hours, totals.slow_hours, totals.interval_count, totals.max_slowdown,
    totals.first_measured_hour_utc, totals.last_measured_hour_utc, totals.first_slow_hour_utc,
    totals.slow_hours > 0 as is_acute,
    coalesce(medians.window_drive_hours, 0) as window_drive_hours,
    medians.median_slowdown,
    coalesce(
        medians.median_slowdown >= {{ var('chronic_slowdown') }}
        and 2 * medians.window_drive_hours >= medians.raid_hours,
        false
    ) as is_chronic
from {{ ref('int_drives__totals') }} as totals
inner join {{ ref('int_drives') }} as drives on totals.drive_id = drives.drive_id
left join {{ ref('int_drives__window_medians') }} as medians on totals.drive_id = medians.drive_id
