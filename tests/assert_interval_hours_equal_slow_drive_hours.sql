-- Every slow hour is in exactly one interval, at either threshold (contract, sum 4). A row here is a drive whose intervals cover more or
-- fewer hours than it was slow.
with slow_hours as (
{%- for threshold in ('slow_threshold', 'mild_threshold') %}
    select
        drive_id,
        cast({{ var(threshold) }} as double) as threshold,
        cast(sum(slowdown_hours_{{ edge_name(var(threshold)) }}) as bigint) as slow_hours
    from {{ ref('int_drive_days') }}
    where slowdown_hours_{{ edge_name(var(threshold)) }} > 0
    group by drive_id
    {{ 'union all' if not loop.last }}
{%- endfor %}
),

intervals as (
    select drive_id, threshold, cast(sum(interval_hours) as bigint) as interval_hours
    from {{ ref('fct_slowdown_intervals') }}
    group by drive_id, threshold
)

select
    coalesce(slow_hours.drive_id, intervals.drive_id) as drive_id,
    coalesce(slow_hours.threshold, intervals.threshold) as threshold,
    slow_hours.slow_hours,
    intervals.interval_hours
from slow_hours
full outer join intervals on slow_hours.drive_id = intervals.drive_id and slow_hours.threshold = intervals.threshold
where coalesce(slow_hours.slow_hours, 0) <> coalesce(intervals.interval_hours, 0)
