-- Slowdown of imbalanced drive-hours: hits of total by RAID group. Grain: measure, class, x, kind, cluster_id.
with raid_groups as (
    select
        drives.kind,
        days.raid_group_id,
        days.imbalance || '_imbalanced_slowdown' as measure,
        sum(days.slowdown_hours) as slowdown_hours
{%- for edge in var('imbalanced_edges') %},
        sum(days.slowdown_hours_{{ edge_name(edge) }}) as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from {{ ref('int_imbalanced_days') }} as days
    inner join {{ source('intermediate', 'int_drives') }} as drives on days.drive_id = drives.drive_id
    group by drives.kind, days.raid_group_id, days.imbalance
),

edges as (
    select distinct x
    from {{ ref('study_measures') }}
    where measure in ('rate_imbalanced_slowdown', 'size_imbalanced_slowdown') and estimate <> 'percentile' and x is not null
)

select
    raid_groups.measure,
    'all' as class,
    edges.x,
    raid_groups.kind,
    raid_groups.raid_group_id as cluster_id,
    cast({{ at_edge('edges.x', var('imbalanced_edges'), 'raid_groups.slowdown_hours') }} as bigint) as hits,
    cast(raid_groups.slowdown_hours as bigint) as total
from raid_groups
cross join edges
