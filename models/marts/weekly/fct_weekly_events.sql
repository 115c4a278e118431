-- Drive events of an ISO week (UTC), and how many fell together with a slowdown. Grain: week_utc, kind, event_type.
select
    date_trunc('week', occurred_at) as week_utc,
    kind,
    event_type,
    is_explicit,
    count(*) as event_count,
    count(distinct drive_id) as drive_count,
    count(slow_within_window) as judged_count,
    count(case when slow_within_window then 1 end) as slow_count,
    cast(count(case when slow_within_window then 1 end) as double) / nullif(count(slow_within_window), 0) as slow_ratio
from {{ ref('fct_drive_events') }}
group by date_trunc('week', occurred_at), kind, event_type, is_explicit
