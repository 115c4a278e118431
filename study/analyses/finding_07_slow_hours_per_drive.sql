-- Finding 7: do the slow hours come from a few drives, again and again? Slow drives by the number of their slow hours.
select
    kind,
    count(*) as slow_drive_count,
    count(case when slow_hours >= 100 then 1 end) as drives_from_100_slow_hours,
    100.0 * count(case when slow_hours >= 100 then 1 end) / count(*) as percent_from_100_slow_hours,
    count(case when slow_hours < 5 then 1 end) as drives_below_5_slow_hours,
    100.0 * count(case when slow_hours < 5 then 1 end) / count(*) as percent_below_5_slow_hours
from marts.fct_drive_slowness
where slow_hours >= 1
group by kind
order by kind asc
