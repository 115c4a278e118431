{{ config(materialized='view') }}
-- Day of each drive: how much of it could be measured, how slow it was, and its load. Grain: drive_id, raid_group_id, day_utc.
select
    days.day_utc, days.drive_id, days.raid_group_id,
    drives.kind, drives.vendor, drives.model,
    {{ age_year('drives.deployed_on', 'days.day_utc') }} as age_year,
    {{ hour_count('days.in_population_in') }} as reported_hours,
    days.slowdown_hours as drive_hours,
    days.slow_hours, days.mild_hours, days.judged_hours, days.judged_slow_hours, days.interval_count, days.max_slowdown, days.io_count
from {{ ref('int_drive_days') }} as days
inner join {{ ref('int_drives') }} as drives on days.drive_id = drives.drive_id
where days.in_population_in <> 0
