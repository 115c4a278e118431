-- Drives that several devices reach, whose drive-hours of the status window's days were added up. Grain: drive_id.
select
    drives.drive_id, drives.host, drives.device,
    cast(sum(merged.path_spans) as bigint) as path_spans
from {{ ref('int_drive_days__merged') }} as merged
inner join {{ ref('fct_status_window') }} as status_window on merged.day_utc >= cast(status_window.first_hour_utc as date)
inner join {{ ref('int_drives') }} as drives on merged.drive_id = drives.drive_id
where merged.path_spans > 0
group by drives.drive_id, drives.host, drives.device
