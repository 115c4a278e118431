-- Finding 6: how many drives were ever at least 2 times, or 16 times, as slow as the drives of their RAID group?
select
    kind,
    count(*) as drive_count,
    count(case when is_acute then 1 end) as drives_from_2x,
    100.0 * count(case when is_acute then 1 end) / count(*) as percent_from_2x,
    count(case when max_slowdown >= 16 then 1 end) as drives_from_16x,
    100.0 * count(case when max_slowdown >= 16 then 1 end) / count(*) as percent_from_16x
from marts.fct_drive_slowness
group by kind
order by kind asc
