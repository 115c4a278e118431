{{ config(meta={'made': 'each_day'}) }}
-- Drives whose rows in the status window name a RAID group that no period of theirs in that hour names, although one names another; the row wins.
-- Grain: drive_id, raid_group_id, inventory_raid_group_id.
with moved as (
    -- few drives are ever named in another group; only their hours are looked at one by one
    select distinct days.drive_id
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('fct_status_window') }} as status_window on days.day_utc >= cast(status_window.first_hour_utc as date)
    inner join {{ ref('int_drives__segments') }} as segments
        on days.drive_id = segments.drive_id
        and segments.is_believed
        and segments.raid_group_id <> days.raid_group_id
        and segments.from_hour_utc < cast(days.day_utc as timestamp) + interval 24 hour
        and segments.to_hour_utc > cast(days.day_utc as timestamp)
)

select
    drive_hours.drive_id, drive_hours.raid_group_id,
    segments.raid_group_id as inventory_raid_group_id,
    count(*) as hours,
    min(drive_hours.hour_utc) as first_hour_utc,
    max(drive_hours.hour_utc) as last_hour_utc
from {{ ref('int_drive_hours') }} as drive_hours
inner join moved on drive_hours.drive_id = moved.drive_id
inner join {{ ref('fct_status_window') }} as status_window on drive_hours.hour_utc >= status_window.first_hour_utc
inner join {{ ref('int_drives__segments') }} as segments
    on drive_hours.drive_id = segments.drive_id
    and segments.is_believed
    and segments.from_hour_utc <= drive_hours.hour_utc
    and segments.to_hour_utc > drive_hours.hour_utc
    and segments.raid_group_id <> drive_hours.raid_group_id
left join {{ ref('int_drives__segments') }} as own
    on drive_hours.drive_id = own.drive_id
    and drive_hours.raid_group_id = own.raid_group_id
    and own.from_hour_utc <= drive_hours.hour_utc
    and own.to_hour_utc > drive_hours.hour_utc
where own.drive_id is null
group by drive_hours.drive_id, drive_hours.raid_group_id, segments.raid_group_id
