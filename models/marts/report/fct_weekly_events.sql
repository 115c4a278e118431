-- Drive events of an ISO week (UTC), how many fell together with a slowdown, and what became of the unplugs. Grain: week_utc, kind, event_type.
with events as (
    select
        cast(date_trunc('week', occurred_at) as timestamp) as week_utc,
        kind, event_type, is_explicit,
        count(*) as event_count,
        count(distinct drive_id) as drive_count,
        count(slow_within_window) as judged_count,
        count(case when slow_within_window then 1 end) as slow_count
    from {{ ref('fct_drive_events') }}
    group by cast(date_trunc('week', occurred_at) as timestamp), kind, event_type, is_explicit
),

unplugs as (
    select
        cast(date_trunc('week', unplugged_at) as timestamp) as week_utc,
        kind,
        'unplug' as event_type,
        count(case when is_replugged then 1 end) as replugged_count,
        count(case when is_replaced then 1 end) as replaced_count,
        count(case when preceding_severity is not null then 1 end) as after_slowdown_count,
        count(recur_hours) as recurred_count
    from {{ ref('fct_unplug_episodes') }}
    group by cast(date_trunc('week', unplugged_at) as timestamp), kind
)

select
    events.week_utc, events.kind, events.event_type, events.is_explicit, events.event_count, events.drive_count, events.judged_count,
    events.slow_count,
    cast(events.slow_count as double) / nullif(events.judged_count, 0) as slow_ratio,
    unplugs.replugged_count, unplugs.replaced_count, unplugs.after_slowdown_count, unplugs.recurred_count
from events
left join unplugs on events.week_utc = unplugs.week_utc and events.kind = unplugs.kind and events.event_type = unplugs.event_type
