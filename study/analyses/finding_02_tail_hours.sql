-- Finding 2: in how many of its hours does a RAID group have a drive at least twice as slow as its median, so that a full stripe waits?
select
    kind,
    count(*) as raid_hours,
    count(case when is_tail_hour then 1 end) as tail_hours,
    100.0 * count(case when is_tail_hour then 1 end) / count(*) as tail_percent,
    count(case when is_tail_hour_15 then 1 end) as raid_hours_from_1_5x,
    100.0 * count(case when is_tail_hour_15 then 1 end) / count(*) as percent_from_1_5x
from marts.fct_raid_hours
group by kind
order by kind asc
