-- Share of RAID-hours whose tail 1 stays below the mild threshold, and below the slow one. Grain: measure, class, x, kind.
with raid_groups as (
    select
        coalesce(kinds.kind, 'unknown') as kind,
        days.raid_group_id as cluster_id,
        cast({{ hour_index("cast(date_trunc('week', days.day_utc) as timestamp)") }} as double) as x,
        cast(sum(days.raid_hours) as bigint) as raid_hours,
        cast(sum(days.mild_tail_hours) as bigint) as mild_tail_hours,
        cast(sum(days.tail_hours) as bigint) as tail_hours
    from {{ ref('int_raid_group_days') }} as days
    left join {{ ref('int_raid_groups__kinds') }} as kinds on days.raid_group_id = kinds.raid_group_id
    where days.raid_hours > 0
    group by coalesce(kinds.kind, 'unknown'), days.raid_group_id, cast(date_trunc('week', days.day_utc) as timestamp)
),

clusters as (
{%- for class, tail_hours in (('mild', 'mild_tail_hours'), ('slow', 'tail_hours')) %}
    select 'below' as measure, '{{ class }}' as class, x, kind, cluster_id, raid_hours - {{ tail_hours }} as hits, raid_hours as total
    from raid_groups
    {%- if not loop.last %}
    union all
    {%- endif %}
{%- endfor %}
),

{{ share_estimates('clusters', is_pooled=true) }}
