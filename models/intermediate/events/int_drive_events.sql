-- Every drive event, and whether the drive was slow then or in the next hour. Grain: drive_id, occurred_at, event_type.
select
    events.drive_id, events.occurred_at, events.event_type,
    drives.kind,
    events.raid_group_id, events.slot, events.ended_at, events.detail,
    events.event_type in ('{{ var("explicit_event_types") | join("', '") }}') as is_explicit,
    events.is_in_population,
    -- in the event's hour or the next; nothing to say where the drive has no slowdown in either
    case when followed.hours_until_slowdown <= 1 then coalesce(followed.hours_until_slow <= 1, false) end as slow_within_window,
    followed.hours_until_slowdown, followed.hours_until_slow
from {{ ref('int_drive_events__placed') }} as events
left join {{ ref('int_drive_events__followed') }} as followed
    on events.drive_id = followed.drive_id
    and events.occurred_at = followed.occurred_at
    and events.event_type = followed.event_type
inner join {{ ref('int_drives') }} as drives on events.drive_id = drives.drive_id
