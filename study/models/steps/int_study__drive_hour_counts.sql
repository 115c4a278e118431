-- Drive-hours by slowdown: hits of total by RAID group. Grain: measure, class, x, kind, cluster_id.
with drive_days as (
    select
        days.*,
        drives.kind, drives.flash_cell, drives.vendor_class,
        'year ' || cast({{ age_year('drives.deployed_on', 'days.day_utc') }} as string) as age_class
    from {{ source('intermediate', 'int_drive_days') }} as days
    inner join {{ ref('int_study__drive_classes') }} as drives on days.drive_id = drives.drive_id
    where days.slowdown_hours > 0
),

raid_groups as (
    select
        kind, raid_group_id, age_class, flash_cell, vendor_class,
        sum(slowdown_hours) as slowdown_hours
{%- for edge in var('slowdown_edges') %},
        sum(slowdown_hours_{{ edge_name(edge) }}) as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from drive_days
    group by kind, raid_group_id, age_class, flash_cell, vendor_class
),

classed_hours as (
    select 'all' as class, * from raid_groups
    union all
    select age_class as class, * from raid_groups where age_class is not null
    union all
    select flash_cell as class, * from raid_groups where flash_cell is not null
    union all
    select vendor_class as class, * from raid_groups where vendor_class is not null
),

-- exactly at an edge: what separates `at most` from `less than`
at_edges as (
    select
        drives.kind,
        slow_hours.raid_group_id,
        drives.flash_cell, drives.vendor_class,
        slow_hours.slowdown,
        count(*) as hour_count
    from {{ source('intermediate', 'int_drive_hours__slow') }} as slow_hours
    inner join {{ ref('int_study__drive_classes') }} as drives on slow_hours.drive_id = drives.drive_id
    where slow_hours.slowdown in (select x from ({{ reference_edges('slowdown_above') }}) as reference_edges) and drives.flash_cell is not null
    group by drives.kind, slow_hours.raid_group_id, drives.flash_cell, drives.vendor_class, slow_hours.slowdown
),

classed_at_edges as (
    select flash_cell as class, * from at_edges
    union all
    select vendor_class as class, * from at_edges where vendor_class is not null
),

at_edge_totals as (
    select class, kind, raid_group_id, slowdown, sum(hour_count) as hour_count
    from classed_at_edges
    group by class, kind, raid_group_id, slowdown
),

-- every class wherever a reference needs one: Finding 11 is the difference of two, and intervals of percentiles use all of them
edges as (
    select distinct x from ({{ reference_edges('slowdown') }}) as reference_edges
)

select
    'slowdown' as measure,
    classed_hours.class,
    edges.x,
    classed_hours.kind,
    classed_hours.raid_group_id as cluster_id,
    cast(sum({{ at_edge('edges.x', var('slowdown_edges'), 'classed_hours.slowdown_hours') }}) as bigint) as hits,
    cast(sum(classed_hours.slowdown_hours) as bigint) as total
from classed_hours
cross join edges
group by classed_hours.class, edges.x, classed_hours.kind, classed_hours.raid_group_id
union all
select
    'slowdown_above' as measure,
    classed_hours.class,
    edges.x,
    classed_hours.kind,
    classed_hours.raid_group_id as cluster_id,
    cast(
        sum({{ at_edge('edges.x', var('slowdown_edges'), 'classed_hours.slowdown_hours') }}) - coalesce(max(at_edge_totals.hour_count), 0) as bigint
    ) as hits,
    cast(sum(classed_hours.slowdown_hours) as bigint) as total
from classed_hours
inner join ({{ reference_edges('slowdown_above') }}) as edges on classed_hours.class = edges.class
left join at_edge_totals
    on classed_hours.class = at_edge_totals.class
    and classed_hours.kind = at_edge_totals.kind
    and classed_hours.raid_group_id = at_edge_totals.raid_group_id
    and edges.x = at_edge_totals.slowdown
group by classed_hours.class, edges.x, classed_hours.kind, classed_hours.raid_group_id
