{{ config(meta={'by_week': {'column': 'hour_utc'}}) }}
-- How many RAID groups had a tail in each hour: when the fleet is slow. Grain: hour_utc, kind.
select
    hour_utc, kind,
    count(*) as raid_hours,
    count(case when is_tail_hour then 1 end) as tail_hours,
    cast(count(case when is_tail_hour then 1 end) as double) / count(*) as tail_hour_ratio
from {{ ref('fct_raid_hours') }}
group by hour_utc, kind
