-- RAID-hours by tail and by RIO degradation at transitions: hits of total by RAID group. Grain: measure, class, x, kind, cluster_id.
with raid_groups as (
    select
        days.raid_group_id,
        coalesce(kinds.kind, 'unknown') as kind,
        sum(days.raid_hours) as raid_hours
{%- for rank in (1, 2, 3) %}
{%- for edge in var('tail_edges') %},
        sum(days.tail_{{ rank }}_{{ edge_name(edge) }}) as tail_{{ rank }}_{{ edge_name(edge) }}
{%- endfor %}
{%- for edge in var('study_edges') %},
        sum(days.tail_{{ rank }}_is_{{ edge_name(edge) }}) as tail_{{ rank }}_is_{{ edge_name(edge) }}
{%- endfor %}
{%- endfor %}
{%- for transition in ('stable_to_stable', 'stable_to_tail') %},
        sum(days.{{ transition }}_rio) as {{ transition }}_rio
{%- for edge in var('rio_edges') %},
        sum(days.{{ transition }}_rio_{{ edge_name(edge) }}) as {{ transition }}_rio_{{ edge_name(edge) }}
{%- endfor %}
{%- endfor %}
    from {{ source('intermediate', 'int_raid_group_days') }} as days
    left join {{ source('intermediate', 'int_raid_groups__kinds') }} as kinds on days.raid_group_id = kinds.raid_group_id
    group by days.raid_group_id, coalesce(kinds.kind, 'unknown')
)
{% for rank in (1, 2, 3) %}
select
    'tail_{{ rank }}' as measure,
    'all' as class,
    edges.x,
    kind,
    raid_group_id as cluster_id,
    cast({{ at_edge('edges.x', var('tail_edges'), 'tail_' ~ rank) }} as bigint) as hits,
    cast(raid_hours as bigint) as total
from raid_groups
cross join ({{ reference_edges('tail_' ~ rank) }}) as edges
union all
select
    'tail_{{ rank }}_is' as measure,
    'all' as class,
    edges.x,
    kind,
    raid_group_id as cluster_id,
    cast({{ at_edge('edges.x', var('study_edges'), 'tail_' ~ rank ~ '_is') }} as bigint) as hits,
    cast(raid_hours as bigint) as total
from raid_groups
cross join ({{ reference_edges('tail_' ~ rank ~ '_is') }}) as edges
union all
{% endfor %}
{%- for transition in ('stable_to_stable', 'stable_to_tail') %}
select
    'rio' as measure,
    '{{ transition }}' as class,
    edges.x,
    kind,
    raid_group_id as cluster_id,
    cast({{ at_edge('edges.x', var('rio_edges'), transition ~ '_rio') }} as bigint) as hits,
    cast({{ transition }}_rio as bigint) as total
from raid_groups
-- both classes wherever a reference needs either: Finding 13 is their difference
cross join (select distinct x from ({{ reference_edges('rio') }}) as reference_edges) as edges
{% if not loop.last %}union all{% endif %}
{%- endfor %}
