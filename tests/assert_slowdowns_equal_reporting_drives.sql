-- Every slowdown belongs to one valid RAID-hour that counts it (contract, sum 1). A row here is an hour in which a drive-hour has a
-- slowdown that no published RAID-hour knows of, or the other way round. By hour: few groups, however many drives.
with drive_hours as (
    select hour_utc, count(slowdown) as slowdown_count
    from {{ ref('fct_drive_hours') }}
    group by hour_utc
),

raid_hours as (
    select hour_utc, cast(sum(reporting_drive_count) as bigint) as reporting_drive_count
    from {{ ref('fct_raid_hours') }}
    -- before it the drive-hours were pruned
    where hour_utc >= coalesce((select max(pruned_before_utc) from {{ ref('publication') }}), hour_utc)
    group by hour_utc
)

select
    coalesce(drive_hours.hour_utc, raid_hours.hour_utc) as hour_utc,
    drive_hours.slowdown_count,
    raid_hours.reporting_drive_count
from drive_hours
full outer join raid_hours on drive_hours.hour_utc = raid_hours.hour_utc
where coalesce(drive_hours.slowdown_count, 0) <> coalesce(raid_hours.reporting_drive_count, 0)
