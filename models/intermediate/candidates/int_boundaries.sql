{%- set silent_days = 28 %}{#- that a drive stays on the list after its last row, if nothing says that it has gone -#}
-- Instants at which drives are judged by what was known then. Grain: boundary_utc.
with known_hours as (
    select last_hour_utc + interval 1 hour as until_utc from {{ ref('stg_raw__publication') }}
),

boundaries as (
    select cast(date_trunc('week', cast(day_utc as timestamp)) as timestamp) + interval 7 day as boundary_utc
    from {{ ref('int_raid_group_days') }}
    where raid_hours > 0
    union
    select cast(date_trunc('day', until_utc) as timestamp) as boundary_utc
    from known_hours
    union
    -- a slow drive that went silent is judged by the days that it reported
    select cast(date_trunc('day', standing.last_hour_utc) as timestamp) + interval 1 day as boundary_utc
    from {{ ref('int_drives__standing') }} as standing
    inner join {{ ref('int_drive_days__slow') }} as slow_days on standing.drive_id = slow_days.drive_id
    cross join known_hours
    where standing.is_expected
        and standing.last_hour_utc >= known_hours.until_utc - interval {{ silent_days }} day
        and slow_days.day_utc >= cast(standing.last_hour_utc - interval {{ silent_days }} day as date)
)

select
    boundaries.boundary_utc,
    cast(date_trunc('week', boundaries.boundary_utc) as timestamp) = boundaries.boundary_utc as is_monday
from boundaries
cross join known_hours
where boundaries.boundary_utc <= known_hours.until_utc
