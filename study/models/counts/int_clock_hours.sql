{{ config(meta={'made': 'by_day_when_asked'}) }}
-- Hours with a slowdown and slow ones by the clock. Grain: day_utc, hour_utc, kind, timezone.
with drive_days as (
    select
        drive_days.day_utc,
        drives.kind, drives.timezone,
        drive_days.in_population_in & drive_days.slowdown_in as slowdown_in,
        drive_days.in_population_in & drive_days.slow_in as slow_in,
        count(*) as drive_count
    from {{ source('intermediate', 'int_drive_days') }} as drive_days
    inner join {{ source('intermediate', 'int_drives') }} as drives on drive_days.drive_id = drives.drive_id
    group by
        drive_days.day_utc, drives.kind, drives.timezone,
        drive_days.in_population_in & drive_days.slowdown_in, drive_days.in_population_in & drive_days.slow_in
),

hours as (
    select distinct day_utc, hour_utc from {{ source('intermediate', 'int_raid_hours') }}
)

select
    drive_days.day_utc,
    hours.hour_utc,
    drive_days.kind, drive_days.timezone,
    cast(sum(drive_days.drive_count) as bigint) as slowdown_hours,
    cast(sum(case when {{ has_hour('drive_days.slow_in', 'hours.hour_utc') }} then drive_days.drive_count else 0 end) as bigint) as slow_hours
from drive_days
inner join hours on drive_days.day_utc = hours.day_utc
where {{ has_hour('drive_days.slowdown_in', 'hours.hour_utc') }}
group by drive_days.day_utc, hours.hour_utc, drive_days.kind, drive_days.timezone
