-- Each drive event with where its drive was in that hour: by its row, else by inventory. Grain: drive_id, occurred_at, event_type.
with events as (
    select
        events.*,
        segments.raid_group_id as inventory_raid_group_id,
        segments.role as inventory_role,
        segments.slot as inventory_slot
    from {{ ref('int_drive_events__identified') }} as events
    left join {{ ref('int_drives__segments') }} as segments
        on events.drive_id = segments.drive_id
        and segments.is_believed
        and segments.from_hour_utc <= events.hour_utc
        and segments.to_hour_utc > events.hour_utc
),

-- all that is asked: where the drive was, and where those were that inventory puts beside it
asked_events as (
    select drive_id, hour_utc from events
    union
    select segments.drive_id, events.hour_utc
    from events
    inner join {{ ref('int_drives__segments') }} as segments
        on events.inventory_raid_group_id = segments.raid_group_id
        and segments.from_hour_utc <= events.hour_utc
        and segments.to_hour_utc > events.hour_utc
),

seen_events as (
    select
        asked_events.drive_id, asked_events.hour_utc,
        days.raid_group_id,
        {{ has_hour('days.in_population_in', 'asked_events.hour_utc') }} as is_in_population
    from asked_events
    inner join {{ ref('int_drive_days') }} as days on asked_events.drive_id = days.drive_id and cast(asked_events.hour_utc as date) = days.day_utc
    -- a drive that moves within a day has a row per group, and each hour in one of them
    where {{ has_hour('days.reported_in', 'asked_events.hour_utc') }}
),

-- a RAID-hour in which no drive reported has the width of inventory, less the drives that report from elsewhere
places as (
    select distinct inventory_raid_group_id as raid_group_id, hour_utc from events
),

absent_hours as (
    select places.raid_group_id, places.hour_utc, count(*) as absent_drive_count
    from places
    inner join {{ ref('int_drives__segments') }} as segments
        on places.raid_group_id = segments.raid_group_id
        and segments.from_hour_utc <= places.hour_utc
        and segments.to_hour_utc > places.hour_utc
    inner join seen_events on segments.drive_id = seen_events.drive_id and places.hour_utc = seen_events.hour_utc
    where segments.is_believed and segments.role = 'data' and seen_events.raid_group_id <> places.raid_group_id
    group by places.raid_group_id, places.hour_utc
),

widths as (
    select
        places.raid_group_id, places.hour_utc,
        coalesce(raid_hours.data_drive_count, steps.expected_drive_count - coalesce(absent_hours.absent_drive_count, 0)) as data_drive_count
    from places
    left join {{ ref('int_raid_hours') }} as raid_hours
        on places.raid_group_id = raid_hours.raid_group_id and places.hour_utc = raid_hours.hour_utc
    left join {{ ref('int_raid_groups__width_steps') }} as steps
        on places.raid_group_id = steps.raid_group_id
        and steps.from_hour_utc <= places.hour_utc
        and steps.to_hour_utc > places.hour_utc
    left join absent_hours on places.raid_group_id = absent_hours.raid_group_id and places.hour_utc = absent_hours.hour_utc
)

select
    events.drive_id, events.occurred_at, events.event_type, events.hour_utc,
    coalesce(seen_events.raid_group_id, events.raid_group_id, events.inventory_raid_group_id) as raid_group_id,
    coalesce(events.slot, events.inventory_slot) as slot,
    events.ended_at, events.detail, events.is_of_drive,
    coalesce(
        seen_events.is_in_population,
        events.inventory_role = 'data' and widths.data_drive_count >= {{ var('min_group_width') }},
        false
    ) as is_in_population
from events
left join seen_events on events.drive_id = seen_events.drive_id and events.hour_utc = seen_events.hour_utc
left join widths on events.inventory_raid_group_id = widths.raid_group_id and events.hour_utc = widths.hour_utc
