-- Every slow hour is in exactly one interval, and every mildly slow one (contract, sum 4). A row here is a drive whose intervals cover more or
-- fewer hours than it was slow.
with slow_hours as (
{%- for degree in ('slow', 'mild') %}
    select drive_id, '{{ degree }}' as degree, cast(sum({{ degree }}_hours) as bigint) as slow_hours
    from {{ ref('int_drive_days') }}
    where {{ degree }}_hours > 0
    group by drive_id
    {{ 'union all' if not loop.last }}
{%- endfor %}
),

intervals as (
    select drive_id, degree, cast(sum(interval_hours) as bigint) as interval_hours
    from {{ ref('fct_slowdown_intervals') }}
    group by drive_id, degree
)

select
    coalesce(slow_hours.drive_id, intervals.drive_id) as drive_id,
    coalesce(slow_hours.degree, intervals.degree) as degree,
    slow_hours.slow_hours,
    intervals.interval_hours
from slow_hours
full outer join intervals on slow_hours.drive_id = intervals.drive_id and slow_hours.degree = intervals.degree
where coalesce(slow_hours.slow_hours, 0) <> coalesce(intervals.interval_hours, 0)
