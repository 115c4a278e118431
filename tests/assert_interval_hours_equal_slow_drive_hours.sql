-- Every slow hour lies in exactly one interval, at either threshold (contract, sum 4). A row here is a drive whose intervals cover more
-- or fewer hours than it was slow. Of days whose drive-hours were pruned the counts by day say how many were slow.
with of_pruned_days as (
    select
        days.drive_id,
        cast(sum(days.slowdown_hours_{{ edge_name(var('slow_threshold')) }}) as bigint) as slow_hours,
        cast(sum(days.slowdown_hours_{{ edge_name(var('mild_threshold')) }}) as bigint) as mild_hours
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('publication') }} as publication on days.day_utc < cast(publication.pruned_before_utc as date)
    group by days.drive_id
),

slow_parts as (
    select drive_id, cast({{ var('slow_threshold') }} as double) as threshold, count(*) as slow_hours
    from {{ ref('fct_drive_hours') }}
    where is_slow
    group by drive_id
    union all
    select drive_id, cast({{ var('mild_threshold') }} as double) as threshold, count(*) as slow_hours
    from {{ ref('fct_drive_hours') }}
    where is_slow_15
    group by drive_id
    union all
    select drive_id, cast({{ var('slow_threshold') }} as double) as threshold, slow_hours from of_pruned_days where slow_hours > 0
    union all
    select drive_id, cast({{ var('mild_threshold') }} as double) as threshold, mild_hours as slow_hours from of_pruned_days where mild_hours > 0
),

slow_hours as (
    select drive_id, threshold, sum(slow_hours) as slow_hours from slow_parts group by drive_id, threshold
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
