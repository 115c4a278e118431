{{ config(materialized="by_day") }}
-- Slow hours by the clock: hours with a slowdown and slow ones, by kind and the drives' time zone.
-- Grain: day_utc, hour_utc, kind, timezone.
select
    drive_hours.day_utc,
    drive_hours.hour_utc,
    drives.kind,
    drives.timezone,
    count(*) as slowdown_hours,
    {{ counted('drive_hours.slowdown >= ' ~ var('slow_threshold')) }} as slow_hours
from {{ ref('int_drive_hours') }} as drive_hours
inner join {{ ref('int_drives') }} as drives on drive_hours.drive_id = drives.drive_id
where drive_hours.is_in_population and drive_hours.slowdown is not null
group by drive_hours.day_utc, drive_hours.hour_utc, drives.kind, drives.timezone
