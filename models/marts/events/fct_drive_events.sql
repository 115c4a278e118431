-- Every drive event, and whether the drive was slow then or in the next hour. Grain: drive_id, occurred_at, event_type.
with nearby as (
    select
        events.drive_id,
        events.occurred_at,
        events.event_type,
        max(case when drive_hours.slowdown >= {{ var('slow_threshold') }} then 1 else 0 end) = 1 as slow_within_window
    from {{ ref('stg_raw__drive_events') }} as events
    inner join {{ ref('int_drive_hours') }} as drive_hours
        on events.drive_id = drive_hours.drive_id
        and (drive_hours.hour_utc = events.hour_utc or drive_hours.hour_utc = events.hour_utc + interval 1 hour)
    where drive_hours.slowdown is not null
    group by events.drive_id, events.occurred_at, events.event_type
)

select
    events.drive_id,
    events.occurred_at,
    events.event_type,
    coalesce(drives.kind, 'unknown') as kind,
    events.raid_group_id,
    events.slot,
    events.ended_at,
    events.detail,
    events.event_type in ('{{ var("explicit_event_types") | join("', '") }}') as is_explicit,
    events.is_in_population,
    nearby.slow_within_window
from {{ ref('int_drive_events__placed') }} as events
left join nearby
    on events.drive_id = nearby.drive_id
    and events.occurred_at = nearby.occurred_at
    and events.event_type = nearby.event_type
left join {{ ref('dim_drives') }} as drives on events.drive_id = drives.drive_id
