-- Drives' health readings beside how slow they were. Grain: drive_id, day_utc, attribute.
with readings as (
    select
        *,
        cast(lag(day_utc) over drive_attribute + interval 1 day as date) = day_utc as is_next_day,
        lag(raw_value) over drive_attribute as last_raw_value,
        lag(normalised_value) over drive_attribute as last_normalised_value
    from {{ ref('int_drive_health_days') }}
    window drive_attribute as (partition by drive_id, attribute order by day_utc)
),

slowness as (
    select
        drive_id, day_utc,
        max_by(raid_group_id, cast(last_hour_utc as string) || ' ' || raid_group_id) as raid_group_id,
        cast(sum(slowdown_hours) as bigint) as slowdown_hours,
        cast(sum(slow_hours) as bigint) as slow_hours
    from {{ ref('int_drive_days') }}
    where slowdown_hours > 0
    group by drive_id, day_utc
)

select
    readings.drive_id, readings.day_utc, readings.attribute,
    drives.kind, drives.model,
    slowness.raid_group_id,
    readings.read_at, readings.raw_value,
    case when readings.is_next_day then readings.raw_value - readings.last_raw_value end as raw_change,
    readings.normalised_value,
    case when readings.is_next_day then readings.normalised_value - readings.last_normalised_value end as normalised_change,
    slowness.slowdown_hours, slowness.slow_hours,
    readings.source
from readings
inner join {{ ref('int_drives') }} as drives on readings.drive_id = drives.drive_id
left join slowness on readings.drive_id = slowness.drive_id and readings.day_utc = slowness.day_utc
