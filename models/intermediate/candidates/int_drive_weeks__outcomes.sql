-- Outcome of each drive in the 28 days after a Monday, where they are over and its RAID group was there on the last day. Grain: drive_id, boundary_utc.
with last_days as (
    -- that day alone decides, whatever comes later: a RAID group that resumes after it had sent no more until then
    select distinct raid_group_id, cast(day_utc as timestamp) - interval 27 day as boundary_utc
    from {{ ref('int_raid_group_days') }}
    where raid_hours > 0
)

select
    drive_weeks.drive_id, drive_weeks.boundary_utc,
    cast(coalesce(sum(days.tail_hours_caused), 0) as bigint) as tail_hours_caused_after,
    cast(coalesce(sum(days.tail_hours_paired), 0) as bigint) as tail_hours_paired_after
from {{ ref('int_drive_weeks') }} as drive_weeks
inner join {{ ref('stg_raw__publication') }} as publication
    on drive_weeks.boundary_utc + interval 28 day <= publication.last_hour_utc + interval 1 hour
-- a RAID group that sends no more says nothing of its drives
inner join last_days on drive_weeks.raid_group_id = last_days.raid_group_id and drive_weeks.boundary_utc = last_days.boundary_utc
left join {{ ref('int_drive_days__slow') }} as days
    on drive_weeks.drive_id = days.drive_id
    and days.day_utc >= cast(drive_weeks.boundary_utc as date)
    and days.day_utc < cast(drive_weeks.boundary_utc + interval 28 day as date)
where drive_weeks.is_monday
group by drive_weeks.drive_id, drive_weeks.boundary_utc
