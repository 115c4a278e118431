-- Every slowdown belongs to one valid RAID-hour that counts it (contract, sum 1). A row here is a day with a slowdown that no published
-- RAID-hour knows of, or the other way round.
with drive_hours as (
    select day_utc, cast(sum(slowdown_hours) as bigint) as slowdown_count
    from {{ ref('int_drive_days') }}
    group by day_utc
),

raid_hours as (
    select cast(hour_utc as date) as day_utc, cast(sum(reporting_drive_count) as bigint) as reporting_drive_count
    from {{ ref('fct_raid_hours') }}
    group by cast(hour_utc as date)
)

select
    coalesce(drive_hours.day_utc, raid_hours.day_utc) as day_utc,
    drive_hours.slowdown_count,
    raid_hours.reporting_drive_count
from drive_hours
full outer join raid_hours on drive_hours.day_utc = raid_hours.day_utc
where coalesce(drive_hours.slowdown_count, 0) <> coalesce(raid_hours.reporting_drive_count, 0)
