-- Where the drives of a RAID group lay in each hour: the band a slow drive stands out from. Grain: raid_group_id, hour_utc.
select
    raid_group_id,
    hour_utc,
    min(slowdown) as lowest_slowdown,
    percentile_cont(0.25) within group (order by slowdown) as lower_quartile_slowdown,
    percentile_cont(0.75) within group (order by slowdown) as upper_quartile_slowdown,
    max(slowdown) as highest_slowdown
from {{ ref('fct_drive_hours') }}
where slowdown is not null
group by raid_group_id, hour_utc
