-- Unplugs of an ISO week (UTC) and what became of them. Grain: week_utc, kind.
select
    date_trunc('week', unplugged_at) as week_utc,
    kind,
    count(*) as unplug_count,
    count(distinct drive_id) as drive_count,
    count(case when is_replugged then 1 end) as replugged_count,
    count(case when is_replaced then 1 end) as replaced_count,
    count(case when preceding_severity is not null then 1 end) as after_slowdown_count,
    count(recur_hours) as recurred_count
from {{ ref('fct_unplug_episodes') }}
group by date_trunc('week', unplugged_at), kind
