-- Finding 4: once a drive is slow, does it stay slow for more than an hour? For 8 hours? An interval is a run of consecutive slow hours.
select
    kind,
    count(*) as interval_count,
    count(case when interval_hours > 1 then 1 end) as longer_than_1_hour,
    100.0 * count(case when interval_hours > 1 then 1 end) / count(*) as percent_longer_than_1_hour,
    count(case when interval_hours >= 8 then 1 end) as from_8_hours,
    100.0 * count(case when interval_hours >= 8 then 1 end) / count(*) as percent_from_8_hours
from marts.fct_slowdown_intervals
where degree = 'slow'
group by kind
order by kind asc
