-- What each drive did in the 28 days after a week boundary, where they are over and its RAID group was there on the last day. Grain: drive_id, boundary_utc.
with known as (
    select last_hour_utc + interval 1 hour as until_utc from {{ ref('stg_raw__publication') }}
),

tail_weeks as (
{{- weekly_tail_hours_caused() -}}
),

-- that day alone decides, whatever comes later: a RAID group that resumes after it had sent no more until then
last_days as (
    select distinct raid_group_id, cast(day_utc as timestamp) - interval 27 day as boundary_utc
    from {{ ref('int_raid_group_days') }}
    where raid_hours > 0
)

select
    drive_weeks.drive_id,
    drive_weeks.boundary_utc,
    drive_weeks.week_no,
    cast(coalesce(sum(tail_weeks.tail_hours_caused), 0) as bigint) as tail_hours_caused_after
from {{ ref('int_drive_weeks') }} as drive_weeks
cross join known
-- a RAID group that sends no more says nothing of its drives
inner join last_days on drive_weeks.raid_group_id = last_days.raid_group_id and drive_weeks.boundary_utc = last_days.boundary_utc
left join tail_weeks
    on drive_weeks.drive_id = tail_weeks.drive_id
    and tail_weeks.week_no between drive_weeks.week_no and drive_weeks.week_no + 3
where drive_weeks.boundary_utc + interval 28 day <= known.until_utc
group by drive_weeks.drive_id, drive_weeks.boundary_utc, drive_weeks.week_no
