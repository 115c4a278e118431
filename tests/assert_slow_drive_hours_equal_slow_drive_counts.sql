-- A RAID-hour counts its slow drives, and is a tail hour exactly when there is one (contract, sum 2). A row here is a RAID-hour whose
-- count, tail and slow drive-hours do not tell the same story.
with drive_hours as (
    select raid_group_id, hour_utc, count(*) as slow_drive_hours
    from {{ ref('fct_drive_hours') }}
    where is_slow
    group by raid_group_id, hour_utc
),

raid_hours as (
    select raid_group_id, hour_utc, slow_drive_count, is_tail_hour
    from {{ ref('fct_raid_hours') }}
    where (slow_drive_count > 0 or is_tail_hour)
        -- before it the drive-hours were pruned
        and hour_utc >= coalesce((select max(pruned_before_utc) from {{ ref('publication') }}), hour_utc)
)

select
    coalesce(drive_hours.raid_group_id, raid_hours.raid_group_id) as raid_group_id,
    coalesce(drive_hours.hour_utc, raid_hours.hour_utc) as hour_utc,
    drive_hours.slow_drive_hours,
    raid_hours.slow_drive_count,
    raid_hours.is_tail_hour
from drive_hours
full outer join raid_hours
    on drive_hours.raid_group_id = raid_hours.raid_group_id and drive_hours.hour_utc = raid_hours.hour_utc
where coalesce(drive_hours.slow_drive_hours, 0) <> coalesce(raid_hours.slow_drive_count, 0)
    or coalesce(raid_hours.is_tail_hour, false) <> (coalesce(raid_hours.slow_drive_count, 0) >= 1)
