{{ config(meta={'made': 'each_day'}) }}
-- Drives whose rows in the status window name a RAID group that no period of theirs in that hour names, although one names another; the row wins.
-- Grain: drive_id, raid_group_id, inventory_raid_group_id.
with moved_drives as (
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
),

-- distinct, so that engines look for the drives' own groups among these hours, not among all
differing_hours as (
    select distinct drive_hours.drive_id, drive_hours.raid_group_id, drive_hours.hour_utc, segments.raid_group_id as inventory_raid_group_id
    from {{ ref('int_drive_hours') }} as drive_hours
    inner join moved_drives on drive_hours.drive_id = moved_drives.drive_id
    inner join {{ ref('fct_status_window') }} as status_window on drive_hours.hour_utc >= status_window.first_hour_utc
    inner join {{ ref('int_drives__segments') }} as segments
        on drive_hours.drive_id = segments.drive_id
        and segments.is_believed
        and segments.from_hour_utc <= drive_hours.hour_utc
        and segments.to_hour_utc > drive_hours.hour_utc
        and segments.raid_group_id <> drive_hours.raid_group_id
)

select
    differing_hours.drive_id, differing_hours.raid_group_id, differing_hours.inventory_raid_group_id,
    count(*) as hours,
    min(differing_hours.hour_utc) as first_hour_utc,
    max(differing_hours.hour_utc) as last_hour_utc
from differing_hours
left join {{ ref('int_drives__segments') }} as own
    on differing_hours.drive_id = own.drive_id
    and differing_hours.raid_group_id = own.raid_group_id
    and own.from_hour_utc <= differing_hours.hour_utc
    and own.to_hour_utc > differing_hours.hour_utc
where own.drive_id is null
group by differing_hours.drive_id, differing_hours.raid_group_id, differing_hours.inventory_raid_group_id
