-- The rows a RAID-hour's medians were taken over are the rows that are held against them. A row here is a RAID-hour that counted other
-- drive-hours than it stored, or that has none.
with drive_hours as (
    select raid_group_id, hour_utc, count(*) as row_count
    from {{ ref('int_drive_hours') }}
    -- of a day before it the rows of a chronic window alone are left
    where hour_utc >= coalesce((select max(pruned_before_utc) from {{ ref('publication') }}), hour_utc)
    group by raid_group_id, hour_utc
),

raid_hours as (
    select raid_group_id, hour_utc, row_count
    from {{ ref('int_raid_hours__medians') }}
    where cast(hour_utc as date) in (select day_utc from {{ ref('int_drive_hours') }})
)

select
    coalesce(drive_hours.raid_group_id, raid_hours.raid_group_id) as raid_group_id,
    coalesce(drive_hours.hour_utc, raid_hours.hour_utc) as hour_utc,
    drive_hours.row_count as drive_hour_count,
    raid_hours.row_count as counted_drive_hour_count
from drive_hours
full outer join raid_hours
    on drive_hours.raid_group_id = raid_hours.raid_group_id and drive_hours.hour_utc = raid_hours.hour_utc
where coalesce(drive_hours.row_count, 0) <> coalesce(raid_hours.row_count, 0)
