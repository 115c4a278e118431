-- Finding 14: does anyone pull a slow drive within a day of its turning slow? By drive; mild: from 1.5x, never 2x.
with drives as (
    select kind, drive_id, degree as slowness, min(wait_hours) as wait_hours
    from marts.fct_slowdown_intervals
    where degree = 'slow' or severity = '1.5-2x'
    group by kind, drive_id, degree
)

select
    kind, slowness,
    count(*) as drive_count,
    count(case when wait_hours <= 24 then 1 end) as unplugged_within_a_day,
    100.0 * count(case when wait_hours <= 24 then 1 end) / count(*) as percent_within_a_day
from drives
group by kind, slowness
order by kind asc, slowness desc
