-- Do some models run slow more often than others? Slow drive-hours by kind and model, with both counts.
select
    drive_hours.kind,
    drives.model,
    count(distinct drive_hours.drive_id) as drive_count,
    count(drive_hours.slowdown) as drive_hours,
    count(case when drive_hours.is_slow then 1 end) as slow_drive_hours,
    cast(count(case when drive_hours.is_slow then 1 end) as double) / nullif(count(drive_hours.slowdown), 0) as slow_drive_hour_ratio
from marts.fct_drive_hours as drive_hours
inner join marts.dim_drives as drives on drive_hours.drive_id = drives.drive_id
group by drive_hours.kind, drives.model
order by slow_drive_hour_ratio desc nulls last
