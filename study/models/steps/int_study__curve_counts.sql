-- The populations behind the study's figures. Grain: figure, curve, x.
with halves as (
    select 'disk' as kind, 'a' as half, 'c' as second_half, 'Disk' as curve
    union all
    select 'ssd' as kind, 'b' as half, 'd' as second_half, 'SSD' as curve
),

raid_groups as (
    select halves.kind, halves.curve, groups.data_drive_count, groups.duration_days
    from {{ source('intermediate', 'int_raid_groups') }} as groups
    inner join halves on groups.kind = halves.kind
    where groups.data_drive_count is not null
),

day_counts as (
    select
        halves.kind, halves.half, halves.curve,
        counts.measure,
        cast(counts.edge_per_mille as double) / 1000 as x,
        sum(counts.hour_count) as value_count,
        sum(case when counts.is_on_edge then counts.hour_count else 0 end) as equal_count
    from {{ ref('int_day_counts') }} as counts
    inner join halves on counts.kind = halves.kind
    group by halves.kind, halves.half, halves.curve, counts.measure, counts.edge_per_mille
),

slow_hours as (
    select
        drives.kind,
        slow_hours.slowdown, slow_hours.is_slow, slow_hours.rate_imbalance, slow_hours.size_imbalance,
        classes.flash_cell, classes.vendor_class,
        {{ bin_edge('slow_hours.slowdown') }} as slowdown_edge,
        {{ bin_edge('slow_hours.rate_imbalance') }} as rate_edge,
        {{ bin_edge('slow_hours.size_imbalance') }} as size_edge
    from {{ source('intermediate', 'int_drive_hours__slow') }} as slow_hours
    inner join {{ source('intermediate', 'int_drives') }} as drives on slow_hours.drive_id = drives.drive_id
    inner join {{ ref('int_study__drive_classes') }} as classes on slow_hours.drive_id = classes.drive_id
),

slow_drives as (
    select drive_id, count(*) as slow_hours, max(slowdown) as max_slowdown
    from {{ source('intermediate', 'int_drive_hours__slow') }}
    where is_slow
    group by drive_id
),

-- cells below the first of `study_edges` are counted at the edges only; nothing says how many values lie exactly on one of them
cell_days as (
    select classes.flash_cell, classes.vendor_class, days.*
    from {{ source('intermediate', 'int_drive_days') }} as days
    inner join {{ ref('int_study__drive_classes') }} as classes on days.drive_id = classes.drive_id
    where classes.kind = 'ssd' and classes.flash_cell is not null and days.slowdown_hours > 0
),

cell_totals as (
    select
        class,
        sum(slowdown_hours) as slowdown_hours
{%- for edge in var('slowdown_edges') %},
        sum(slowdown_hours_{{ edge_name(edge) }}) as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from (
        select flash_cell as class, * from cell_days
        union all
        select vendor_class as class, * from cell_days where vendor_class is not null
    ) as classed
    group by class
),

cell_slow_hours as (
    select class, slowdown_edge, slowdown
    from (
        select flash_cell as class, * from slow_hours
        union all
        select vendor_class as class, * from slow_hours where vendor_class is not null
    ) as classed
    where kind = 'ssd' and class is not null and slowdown >= {{ var('study_edges')[0] }}
    union all
    -- a class without a slow hour has its place on the axis too
    select class, cast(1000 * {{ var('study_edges')[0] }} as bigint) as slowdown_edge, cast(null as double) as slowdown
    from cell_totals
),

severities as (
    select listed.*
    from (
        values
            ('disk', '1.5-2x', '1.5-2x'), ('disk', '2-4x', '2-4x'), ('disk', '4-8x', '4-8x'), ('disk', '8x+', '8x+'),
            ('ssd', '1.5-2x', '1.5-2x'), ('ssd', '2-4x', '2x+'), ('ssd', '4-8x', '2x+'), ('ssd', '8x+', '2x+')
    ) as listed (kind, severity, curve)
),

waits as (
    select intervals.kind, severities.curve, intervals.drive_id, min(intervals.wait_hours) as wait_hours
    from {{ source('intermediate', 'int_slowdown_intervals') }} as intervals
    inner join severities on intervals.kind = severities.kind and intervals.severity = severities.severity
    group by intervals.kind, severities.curve, intervals.drive_id
),

singles as (
    select '2a' as figure, curve, kind, cast(data_drive_count as double) as x from raid_groups
    union all
    select '2b' as figure, curve, kind, duration_days as x from raid_groups
    union all
    select '5a' as figure, halves.curve, halves.kind, cast(intervals.hours_until_stable as double) as x
    from {{ source('intermediate', 'int_slowdown_intervals') }} as intervals
    inner join halves on intervals.kind = halves.kind
    where intervals.degree = 'slow'
    union all
    select '5b' as figure, halves.curve, halves.kind, cast(arrivals.gap_hours as double) as x
    from {{ source('intermediate', 'int_slowdown_arrivals') }} as arrivals
    inner join halves on arrivals.kind = halves.kind
    union all
    select '6b' as figure, halves.curve, halves.kind, cast(slow_drives.slow_hours as double) as x
    from slow_drives
    inner join {{ source('intermediate', 'int_drives') }} as drives on slow_drives.drive_id = drives.drive_id
    inner join halves on drives.kind = halves.kind
    union all
    select '11' || halves.half as figure, waits.curve, halves.kind, cast(waits.wait_hours as double) as x
    from waits
    inner join halves on waits.kind = halves.kind
    union all
    select '11' || halves.second_half as figure, severities.curve, halves.kind, cast(episodes.recur_hours as double) as x
    from {{ source('intermediate', 'int_unplug_episodes') }} as episodes
    inner join severities on episodes.kind = severities.kind and episodes.preceding_severity = severities.severity
    inner join halves on episodes.kind = halves.kind
    where episodes.is_in_population and episodes.replugged_at is not null
)

select figure, curve, kind, x, count(*) as value_count, count(*) as equal_count
from singles
group by figure, curve, kind, x
union all
select
    '4' || half as figure,
    case measure when 'slowdown' then 'Si' else 'T' || substring(measure, 6) end as curve,
    kind, x, value_count, equal_count
from day_counts
where measure in ('slowdown', 'tail_1', 'tail_2', 'tail_3')
union all
-- the greatest slowdown of a drive that was never slow is below the figure's first x
select
    '6a' as figure,
    halves.curve, halves.kind,
    {{ bin_edge('coalesce(slow_drives.max_slowdown, 0.0)') }} / cast(1000 as double) as x,
    count(*) as value_count,
    count(case when slow_drives.max_slowdown = {{ bin_edge('slow_drives.max_slowdown') }} / cast(1000 as double) then 1 end) as equal_count
from {{ ref('int_study__drives') }} as drives
inner join halves on drives.kind = halves.kind
left join slow_drives on drives.drive_id = slow_drives.drive_id
group by halves.curve, halves.kind, {{ bin_edge('coalesce(slow_drives.max_slowdown, 0.0)') }}
{%- for figure, ratio in (('7a', 'rate'), ('7c', 'size')) %}
union all
select
    '{{ figure }}' as figure,
    halves.curve, halves.kind,
    slow_hours.{{ ratio }}_edge / cast(1000 as double) as x,
    count(*) as value_count,
    count(case when slow_hours.{{ ratio }}_imbalance = slow_hours.{{ ratio }}_edge / cast(1000 as double) then 1 end) as equal_count
from slow_hours
inner join halves on slow_hours.kind = halves.kind
where slow_hours.is_slow and slow_hours.{{ ratio }}_imbalance is not null
group by halves.curve, halves.kind, slow_hours.{{ ratio }}_edge
{%- endfor %}
{%- for figure, measure in (('7b', 'slowdown_rate_imbalanced'), ('7d', 'slowdown_size_imbalanced')) %}
union all
select '{{ figure }}' as figure, curve, kind, x, value_count, equal_count from day_counts where measure = '{{ measure }}'
{%- endfor %}
union all
select '8' || half as figure, substring(measure, 15) as curve, kind, x, value_count, equal_count
from day_counts
where measure like 'slowdown_year_%'
{%- set edges = var('slowdown_edges') %}
{%- set cells_end = edges.index(var('study_edges')[0]) %}
union all
select
    '9' as figure,
    cell_totals.class as curve,
    'ssd' as kind,
    bins.x,
    case bins.bin when 0 then slowdown_hours - slowdown_hours_{{ edge_name(edges[0]) }}
{%- for number in range(1, cells_end + 1) %}
        when {{ number }} then slowdown_hours_{{ edge_name(edges[number - 1]) }} - slowdown_hours_{{ edge_name(edges[number]) }}
{%- endfor %}
    end as value_count,
    cast(null as bigint) as equal_count
from cell_totals
cross join (values (0, cast(0 as double)){% for number in range(1, cells_end + 1) %}, ({{ number }}, cast({{ edges[number - 1] }} as double)){% endfor %}) as bins (bin, x)
union all
select
    '9' as figure,
    class as curve,
    'ssd' as kind,
    slowdown_edge / cast(1000 as double) as x,
    count(slowdown) as value_count,
    count(case when slowdown = slowdown_edge / cast(1000 as double) then 1 end) as equal_count
from cell_slow_hours
group by class, slowdown_edge
union all
select '10' || half as figure, replace(substring(measure, 5), '_', '-') as curve, kind, x, value_count, equal_count
from day_counts
where measure in ('rio_stable_to_stable', 'rio_stable_to_tail', 'rio_tail_to_stable', 'rio_tail_to_tail')
