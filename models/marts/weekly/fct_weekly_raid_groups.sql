{{ config(meta={'by_week': {'column': 'week_utc'}}) }}
-- Tail hours of each RAID group in an ISO week (UTC). Grain: week_utc, raid_group_id.
with raid_weeks as (
    select
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        raid_group_id, kind,
        max_by(data_drive_count, hour_utc) as data_drive_count,
        count(*) as raid_hours,
        count(case when is_tail_hour then 1 end) as tail_hours,
        cast(sum(slow_drive_count) as bigint) as slow_drive_hours,
        max(tail_1) as max_tail
    from {{ ref('fct_raid_hours') }}
    group by cast(date_trunc('week', hour_utc) as timestamp), raid_group_id, kind
)

select
    *,
    cast(tail_hours as double) / raid_hours as tail_hour_ratio,
    cast(row_number() over (
        partition by week_utc order by tail_hours desc, slow_drive_hours desc, max_tail desc, raid_group_id asc
    ) as bigint) as cost_rank,
    cast(tail_hours as double) / nullif(sum(tail_hours) over (partition by week_utc), 0) as tail_hour_share
from raid_weeks
