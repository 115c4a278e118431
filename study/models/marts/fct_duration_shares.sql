{{ config(schema='report', meta={'made': 'each_day'}) }}
-- How long things last: slow intervals, gaps between slow hours, waits for an unplug, outages, recurrences.
-- Counts of values up to and including `hours`; waits and recurrences that never came count in the population only.
-- Grain: measure, kind, hours.
with durations as (
    select 'interval_hours' as measure, kind, cast(interval_hours as double) as hours
    from {{ source('marts', 'fct_slowdown_intervals') }}
    where degree = 'slow'
    union all
    select 'gap_hours' as measure, kind, cast(gap_hours as double) as hours from {{ source('marts', 'fct_slowdown_arrivals') }}
    union all
    select 'wait_hours' as measure, kind, cast(wait_hours as double) as hours
    from {{ source('marts', 'fct_slowdown_intervals') }}
    where degree = 'slow'
    union all
    select 'outage_hours' as measure, kind, ceil(outage_hours) as hours
    from {{ source('marts', 'fct_unplug_episodes') }}
    where is_in_population and outage_hours is not null
    union all
    select 'recur_hours' as measure, kind, cast(recur_hours as double) as hours
    from {{ source('marts', 'fct_unplug_episodes') }}
    where is_in_population and replugged_at is not null and preceding_severity is not null
),

counted_durations as (
    select measure, kind, hours, count(*) as duration_count
    from durations
    group by measure, kind, hours
),

cumulated_durations as (
    select
        measure, kind, hours, duration_count,
        sum(duration_count) over (
            partition by measure, kind order by hours nulls last rows between unbounded preceding and current row
        ) as cumulative_count,
        sum(duration_count) over (partition by measure, kind) as population_count
    from counted_durations
)

select
    measure, kind,
    cast(hours as bigint) as hours,
    duration_count,
    cast(cumulative_count as bigint) as cumulative_count,
    cast(population_count as bigint) as population_count,
    cast(cumulative_count as double) / population_count as share
from cumulated_durations
where hours is not null
