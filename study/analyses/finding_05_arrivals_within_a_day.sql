-- Finding 5: when a drive is slow again, did its slow hour before lie within a day? gap_hours counts the hours between the two.
select
    kind,
    count(*) as slow_again_count,
    count(case when gap_hours <= 23 then 1 end) as within_a_day,
    100.0 * count(case when gap_hours <= 23 then 1 end) / count(*) as percent_within_a_day
from marts.fct_slowdown_arrivals
group by kind
order by kind asc
