-- Drives that the study counts: those with a slowdown, and their age when they had the first. Grain: drive_id.
with observed_drives as (
    select drive_id, min(day_utc) as first_day_utc, sum(slowdown_hours) as slowdown_hours
    from {{ source('intermediate', 'int_drive_days') }}
    where slowdown_hours > 0
    group by drive_id
)

select
    drives.drive_id, drives.kind, drives.current_raid_group_id, drives.vendor, drives.model, drives.flash_cell, drives.capacity_bytes,
    drives.rpm, drives.interface, drives.deployed_on,
    {{ age_year('drives.deployed_on', 'observed_drives.first_day_utc') }} as first_age_year,
    cast(observed_drives.slowdown_hours as bigint) as slowdown_hours
from observed_drives
inner join {{ source('intermediate', 'int_drives') }} as drives on observed_drives.drive_id = drives.drive_id
