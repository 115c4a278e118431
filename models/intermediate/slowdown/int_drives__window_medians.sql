{{ config(meta={'parts_by': 'drive_id'}) }}
-- The median slowdown of each drive over the last weeks of its RAID group. Grain: drive_id.
select
    drive_hours.drive_id, windows.raid_hours,
    count(*) as window_drive_hours,
    {{ median_of_group('drive_hours.slowdown') }} as median_slowdown
from {{ ref('int_drives__windows') }} as windows
inner join {{ ref('int_drive_hours') }} as drive_hours
    on windows.drive_id = drive_hours.drive_id
    and drive_hours.hour_utc > windows.after_hour_utc
    and drive_hours.hour_utc <= windows.last_hour_utc
where drive_hours.slowdown is not null
group by drive_hours.drive_id, windows.raid_hours
