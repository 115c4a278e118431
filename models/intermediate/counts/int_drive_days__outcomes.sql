{{ config(materialized='view') }}
-- Outcomes of the population hours of each drive's day. Grain: day_utc, drive_id, raid_group_id.
select
    days.day_utc,
    cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp) as week_utc,
    days.drive_id, days.raid_group_id,
    drives.kind,
    {{ hour_count('days.in_population_in') }} as reported_hours,
    {{ hour_count('days.in_population_in & days.slowdown_in') }} as slowdown_hours,
    {{ hour_count('days.in_population_in & days.slow_in') }} as slow_hours
{%- for reason in ('low_coverage', 'no_io', 'too_few_drives', 'zero_median') %},
    {{ hour_count('days.' ~ reason ~ '_in') }} as {{ reason }}_hours
{%- endfor %}
from {{ ref('int_drive_days') }} as days
inner join {{ ref('int_drives') }} as drives on days.drive_id = drives.drive_id
where days.in_population_in <> 0
