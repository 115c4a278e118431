-- The rows that a RAID-hour's medians were taken over are the rows that are compared with them. A row here is a RAID group's day whose medians
-- counted other drive-hours than were stored.
with drive_days as (
    select raid_group_id, day_utc, reported_hours from {{ ref('int_drive_days') }}
    union all
    -- earlier hours of an open day are not computed again
    select raid_group_id, day_utc, -reported_hours as reported_hours
    from {{ source('plan', 'earlier_drive_days') }}
    where day_utc in (select day_utc from {{ source('plan', 'shown_days') }})
),

drive_hours as (
    select raid_group_id, day_utc, cast(sum(reported_hours) as bigint) as row_count
    from drive_days
    group by raid_group_id, day_utc
),

raid_hours as (
    select raid_group_id, cast(hour_utc as date) as day_utc, cast(sum(row_count) as bigint) as row_count
    from {{ ref('int_raid_hours__medians') }}
    where hour_utc >= {{ first_computed_hour() }}
    group by raid_group_id, cast(hour_utc as date)
)

select
    drive_hours.raid_group_id, drive_hours.day_utc,
    drive_hours.row_count as drive_hour_count,
    raid_hours.row_count as counted_drive_hour_count
from drive_hours
left join raid_hours on drive_hours.raid_group_id = raid_hours.raid_group_id and drive_hours.day_utc = raid_hours.day_utc
where drive_hours.row_count <> coalesce(raid_hours.row_count, 0)
    -- pruned days have no medians any more
    and drive_hours.day_utc >= coalesce((select max(cast(pruned_before_utc as date)) from {{ ref('publication') }}), drive_hours.day_utc)
