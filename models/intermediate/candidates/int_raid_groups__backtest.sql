-- What replacing the first drives of each ranking would have saved each RAID group, boundary by boundary; random is what a pick by lot saves in
-- the mean. Grain: kind, boundary_utc, raid_group_id, top_ratio, rule.
with picks as (
    select
        ranked.*,
        tops.top_ratio,
        cast(greatest(ceil(tops.top_ratio * ranked.drive_count), 1) as bigint) as pick_count
    from {{ ref('int_drive_weeks__ranked') }} as ranked
    cross join (
{%- for ratio in var('candidate_top_ratios') %}
        select cast({{ ratio }} as double) as top_ratio{{ "
        union all" if not loop.last }}
{%- endfor %}
    ) as tops
)
{%- for rule in ('model', 'most_slow_hours_28d', 'slowest_now', 'random') %}

select
    kind,
    boundary_utc,
    raid_group_id,
    top_ratio,
    '{{ rule }}' as rule,
    drive_count,
    pick_count,
    -- in hundredths of an hour, so that they add up in any order
{%- if rule == 'random' %}
    cast(round(100.0 * sum(tail_hours_caused_after) * pick_count / drive_count) as bigint) as avoided_hundredths,
{%- else %}
    cast(100 * sum(case when {{ rule }}_rank <= pick_count then tail_hours_caused_after else 0 end) as bigint) as avoided_hundredths,
{%- endif %}
    cast(sum(tail_hours_caused_after) as bigint) as tail_hours_caused_after
from picks
group by kind, boundary_utc, raid_group_id, top_ratio, drive_count, pick_count
{{ "union all" if not loop.last }}
{%- endfor %}
