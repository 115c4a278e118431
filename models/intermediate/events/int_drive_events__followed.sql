{{ config(materialized='view') }}
-- How soon at or after each event its drive had a slowdown, and was slow; within the longest window that is asked about.
-- Grain: drive_id, occurred_at, event_type; events that no slowdown follows have no row.
select
    events.drive_id,
    events.occurred_at,
    events.event_type,
    min({{ hour_index('drive_hours.hour_utc') }} - {{ hour_index('events.hour_utc') }}) as hours_until_slowdown,
    min(
        case
            when drive_hours.slowdown >= {{ var('slow_threshold') }}
                then {{ hour_index('drive_hours.hour_utc') }} - {{ hour_index('events.hour_utc') }}
        end
    ) as hours_until_slow
from {{ ref('stg_raw__drive_events') }} as events
inner join {{ ref('int_drive_hours') }} as drive_hours
    on events.drive_id = drive_hours.drive_id
    and drive_hours.hour_utc >= events.hour_utc
    and drive_hours.hour_utc <= events.hour_utc + interval {{ var('event_window_hours') | max }} hour
where drive_hours.slowdown is not null
group by events.drive_id, events.occurred_at, events.event_type
