-- RAID-hours by how slow their slowest drives were in an ISO week (UTC), and what would be left if requests did not wait for the slowest one or two.
-- Grain: week_utc, kind, threshold.
with weeks as (
    select
        cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp) as week_utc,
        coalesce(kinds.kind, 'unknown') as kind,
        max(thresholds.slow_at) as slow_at,
        cast(sum(days.raid_hours) as bigint) as raid_hours,
        cast(sum(days.tail_hours) as bigint) as tail_hours,
        cast(sum(days.second_tail_hours) as bigint) as second_tail_hours,
        cast(sum(days.third_tail_hours) as bigint) as third_tail_hours
{%- for edge in var('tail_edges') %}{% for rank in (1, 2, 3) %},
        cast(sum(days.tail_{{ rank }}_{{ edge_name(edge) }}) as bigint) as tail_{{ rank }}_{{ edge_name(edge) }}
{%- endfor %}{% endfor %}
    from {{ ref('int_raid_group_days') }} as days
    left join {{ ref('int_raid_groups__kinds') }} as kinds on days.raid_group_id = kinds.raid_group_id
    inner join {{ ref('int_thresholds') }} as thresholds on coalesce(kinds.kind, 'unknown') = thresholds.kind
    where days.raid_hours > 0
    group by cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp), coalesce(kinds.kind, 'unknown')
),

thresholds as (
    select
        week_utc, kind,
        slow_at as threshold,
        true as is_slow_threshold,
        raid_hours,
        tail_hours as tail_1_hours,
        second_tail_hours as tail_2_hours,
        third_tail_hours as tail_3_hours
    from weeks
{%- for edge in var('tail_edges') %}
    union all
    select
        week_utc, kind,
        cast({{ edge }} as double) as threshold,
        false as is_slow_threshold,
        raid_hours,
        tail_1_{{ edge_name(edge) }} as tail_1_hours,
        tail_2_{{ edge_name(edge) }} as tail_2_hours,
        tail_3_{{ edge_name(edge) }} as tail_3_hours
    from weeks
    where slow_at <> {{ edge }}
{%- endfor %}
)

select
    week_utc, kind, threshold, is_slow_threshold, raid_hours, tail_1_hours, tail_2_hours, tail_3_hours,
    cast(tail_1_hours as double) / raid_hours as tail_1_ratio,
    cast(tail_2_hours as double) / raid_hours as tail_2_ratio,
    cast(tail_3_hours as double) / raid_hours as tail_3_ratio,
    -- a request that skips the slowest drive waits for the second slowest: tail 2 in the place of tail 1
    tail_1_hours - tail_2_hours as saved_by_cutting_one_hours,
    cast(tail_1_hours - tail_2_hours as double) / nullif(tail_1_hours, 0) as saved_by_cutting_one_ratio,
    tail_1_hours - tail_3_hours as saved_by_cutting_two_hours,
    cast(tail_1_hours - tail_3_hours as double) / nullif(tail_1_hours, 0) as saved_by_cutting_two_ratio
from thresholds
