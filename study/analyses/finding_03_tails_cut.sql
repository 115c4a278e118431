-- Finding 3: what if a RAID group need not wait for its slowest drive, or for its two slowest: how many hours still have a tail?
select
    kind,
    count(*) as raid_hours,
    count(case when is_tail_hour then 1 end) as tail_hours,
    count(case when slow_drive_count >= 2 then 1 end) as tail_hours_without_slowest,
    count(case when slow_drive_count >= 3 then 1 end) as tail_hours_without_two_slowest,
    100.0 * count(case when is_tail_hour then 1 end) / count(*) as tail_percent,
    100.0 * count(case when slow_drive_count >= 2 then 1 end) / count(*) as percent_without_slowest,
    100.0 * count(case when slow_drive_count >= 3 then 1 end) / count(*) as percent_without_two_slowest
from marts.fct_raid_hours
group by kind
order by kind asc
