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
asked as (
    select drive_id, hour_utc from events
    union
    select segments.drive_id, events.hour_utc
    from events
    inner join {{ ref('int_drives__segments') }} as segments
        on events.inventory_raid_group_id = segments.raid_group_id
        and segments.from_hour_utc <= events.hour_utc
        and segments.to_hour_utc > events.hour_utc
    where events.inventory_role = 'data' and segments.is_believed and segments.role = 'data'
),

seen as (
    select
        asked.drive_id,
        asked.hour_utc,
        days.raid_group_id,
        {{ has_hour('days.in_population_in', 'asked.hour_utc') }} as is_in_population
    from asked
    inner join {{ ref('int_drive_days') }} as days on asked.drive_id = days.drive_id and cast(asked.hour_utc as date) = days.day_utc
    -- a drive that moves within a day has a row per group, and each hour in one of them
    where {{ has_hour('days.reported_in', 'asked.hour_utc') }}
),

placed as (
    select
        events.*,
        seen.raid_group_id as reported_raid_group_id,
        seen.is_in_population as is_reported_in_population
    from events
    left join seen on events.drive_id = seen.drive_id and events.hour_utc = seen.hour_utc
),

-- RAID-hours of drives that did not report: the width is that of inventory, less the drives that report from elsewhere
silent as (
    select distinct inventory_raid_group_id as raid_group_id, hour_utc
    from placed
    where reported_raid_group_id is null and inventory_role = 'data'
),

absent as (
    select silent.raid_group_id, silent.hour_utc, count(*) as absent_drive_count
    from silent
    inner join {{ ref('int_drives__segments') }} as segments
        on silent.raid_group_id = segments.raid_group_id
        and segments.from_hour_utc <= silent.hour_utc
        and segments.to_hour_utc > silent.hour_utc
    inner join seen on segments.drive_id = seen.drive_id and silent.hour_utc = seen.hour_utc
    where segments.is_believed and segments.role = 'data' and seen.raid_group_id <> silent.raid_group_id
    group by silent.raid_group_id, silent.hour_utc
),

silent_widths as (
    select
        silent.raid_group_id,
        silent.hour_utc,
        coalesce(
            raid_hours.data_drive_count, coalesce(steps.expected_drive_count, 0) - coalesce(absent.absent_drive_count, 0)
        ) as data_drive_count
    from silent
    left join {{ ref('int_raid_hours') }} as raid_hours
        on silent.raid_group_id = raid_hours.raid_group_id and silent.hour_utc = raid_hours.hour_utc
    left join {{ ref('int_raid_groups__width_steps') }} as steps
        on silent.raid_group_id = steps.raid_group_id
        and steps.from_hour_utc <= silent.hour_utc
        and steps.to_hour_utc > silent.hour_utc
    left join absent on silent.raid_group_id = absent.raid_group_id and silent.hour_utc = absent.hour_utc
)

select
    placed.drive_id,
    placed.occurred_at,
    placed.event_type,
    placed.hour_utc,
    coalesce(placed.reported_raid_group_id, placed.raid_group_id, placed.inventory_raid_group_id) as raid_group_id,
    coalesce(placed.slot, placed.inventory_slot) as slot,
    placed.ended_at,
    placed.detail,
    placed.is_of_drive,
    coalesce(
        placed.is_reported_in_population,
        placed.inventory_role = 'data' and silent_widths.data_drive_count >= {{ var('min_group_width') }},
        false
    ) as is_in_population
from placed
left join silent_widths
    on placed.inventory_raid_group_id = silent_widths.raid_group_id and placed.hour_utc = silent_widths.hour_utc
