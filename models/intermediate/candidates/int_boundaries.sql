-- Instants at which drives are judged by what was known then. Grain: boundary_utc.
with known as (
    select last_hour_utc + interval 1 hour as until_utc from {{ ref('stg_raw__publication') }}
),

boundaries as (
    select cast(date_trunc('week', cast(day_utc as timestamp)) as timestamp) + interval 7 day as boundary_utc
    from {{ ref('int_raid_group_days') }}
    where raid_hours > 0
    union
    select cast(date_trunc('day', until_utc) as timestamp) as boundary_utc
    from known
)

select
    boundaries.boundary_utc,
    cast(date_trunc('week', boundaries.boundary_utc) as timestamp) = boundaries.boundary_utc as is_monday
from boundaries
cross join known
where boundaries.boundary_utc <= known.until_utc
