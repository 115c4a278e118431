-- The wider the RAID group, the likelier it waits for one slow drive: tail hours by number of data drives, with both counts.
select
    kind, data_drive_count,
    count(*) as raid_hours,
    count(case when is_tail_hour then 1 end) as tail_hours,
    cast(count(case when is_tail_hour then 1 end) as double) / count(*) as tail_hour_ratio
from marts.fct_raid_hours
group by kind, data_drive_count
order by kind asc, data_drive_count asc
