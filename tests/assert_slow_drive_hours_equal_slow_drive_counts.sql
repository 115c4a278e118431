-- A RAID-hour counts its slow drives, and is a tail hour exactly when there is one (contract, sum 2). A row here is a RAID group's day whose
-- counts of drives, of RAID-hours and of tail hours differ.
with drive_hours as (
    select raid_group_id, day_utc, cast(sum(slow_hours) as bigint) as slow_drive_hours
    from {{ ref('int_drive_days') }}
    where slow_hours > 0
    group by raid_group_id, day_utc
),

raid_hours as (
    select
        raid_group_id,
        cast(hour_utc as date) as day_utc,
        cast(sum(slow_drive_count) as bigint) as slow_drive_count,
        count(case when is_tail_hour <> (slow_drive_count >= 1) then 1 end) as contradiction_count
    from {{ ref('fct_raid_hours') }}
    where slow_drive_count > 0 or is_tail_hour
    group by raid_group_id, cast(hour_utc as date)
)

select
    coalesce(drive_hours.raid_group_id, raid_hours.raid_group_id) as raid_group_id,
    coalesce(drive_hours.day_utc, raid_hours.day_utc) as day_utc,
    drive_hours.slow_drive_hours,
    raid_hours.slow_drive_count, raid_hours.contradiction_count
from drive_hours
full outer join raid_hours on drive_hours.raid_group_id = raid_hours.raid_group_id and drive_hours.day_utc = raid_hours.day_utc
where coalesce(drive_hours.slow_drive_hours, 0) <> coalesce(raid_hours.slow_drive_count, 0)
    or raid_hours.contradiction_count > 0
