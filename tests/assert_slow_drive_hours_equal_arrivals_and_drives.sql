-- All slow hours of a drive but the first follow another one (contract, sum 5: slow drive-hours = arrivals + drives with a slow hour).
-- A row here is a drive with an arrival too many or too few.
with slow_hours as (
    select drive_id, cast(sum(slow_hours) as bigint) as slow_hours
    from {{ ref('int_drive_days') }}
    where slow_hours > 0
    group by drive_id
),

arrivals as (
    select drive_id, count(*) as arrival_count
    from {{ ref('fct_slowdown_arrivals') }}
    group by drive_id
)

select
    coalesce(slow_hours.drive_id, arrivals.drive_id) as drive_id,
    slow_hours.slow_hours,
    arrivals.arrival_count
from slow_hours
full outer join arrivals on slow_hours.drive_id = arrivals.drive_id
where coalesce(slow_hours.slow_hours, 0) <> coalesce(arrivals.arrival_count, 0) + 1
