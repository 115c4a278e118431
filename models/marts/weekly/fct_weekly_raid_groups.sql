{{ config(meta={'by_week': {'column': 'week_utc'}}) }}
-- Tail hours of each RAID group in an ISO week (UTC), and what slow drives cost it. Grain: week_utc, raid_group_id.
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
),

costs as (
{{- drive_costs_by(['raid_group_id', 'week_utc']) -}}
)

select
    raid_weeks.*,
    cast(raid_weeks.tail_hours as double) / raid_weeks.raid_hours as tail_hour_ratio,
    cast(row_number() over (
        partition by raid_weeks.week_utc
        order by raid_weeks.tail_hours desc, raid_weeks.slow_drive_hours desc, raid_weeks.max_tail desc, raid_weeks.raid_group_id asc
    ) as bigint) as cost_rank,
    cast(raid_weeks.tail_hours as double) / nullif(sum(raid_weeks.tail_hours) over (partition by raid_weeks.week_utc), 0) as tail_hour_share,
    coalesce(costs.slow_drive_count, 0) as slow_drive_count,
    coalesce(costs.judged_tail_hours, 0) as judged_tail_hours,
    coalesce(costs.tail_hours_caused, 0) as tail_hours_caused,
    coalesce(costs.dropped_hours, 0) as dropped_hours,
    costs.io_count_before, costs.io_count_after, costs.io_ratio, costs.rio_lost
from raid_weeks
left join costs on raid_weeks.raid_group_id = costs.raid_group_id and raid_weeks.week_utc = costs.week_utc
