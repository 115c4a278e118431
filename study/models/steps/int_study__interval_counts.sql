-- How long slowdowns last, how soon they come back, how far and how often drives go: hits of total by RAID group. Grain: measure, class, x, kind, cluster_id.
with intervals as (
    select kind, raid_group_id, interval_hours, count(*) as interval_count
    from {{ source('intermediate', 'int_slowdown_intervals') }}
    where degree = 'slow'
    group by kind, raid_group_id, interval_hours
),

arrivals as (
    select kind, raid_group_id as cluster_id, gap_hours, count(*) as arrival_count
    from {{ source('intermediate', 'int_slowdown_arrivals') }}
    group by kind, raid_group_id, gap_hours
),

slow_drives as (
    select drive_id, count(*) as slow_hours, max(slowdown) as max_slowdown
    from {{ source('intermediate', 'int_drive_hours__slow') }}
    where is_slow
    group by drive_id
),

drives as (
    select
        drives.kind,
        coalesce(drives.current_raid_group_id, drives.drive_id) as cluster_id,
        slow_drives.slow_hours, slow_drives.max_slowdown
    from {{ ref('int_study__drives') }} as drives
    left join slow_drives on drives.drive_id = slow_drives.drive_id
)

select
    'interval_hours' as measure,
    'all' as class,
    edges.x,
    intervals.kind,
    intervals.raid_group_id as cluster_id,
    cast(sum(case when intervals.interval_hours <= edges.x then intervals.interval_count else 0 end) as bigint) as hits,
    cast(sum(intervals.interval_count) as bigint) as total
from intervals
cross join ({{ reference_edges('interval_hours') }}) as edges
group by edges.x, intervals.kind, intervals.raid_group_id
union all
select
    'gap_hours' as measure,
    'all' as class,
    edges.x,
    arrivals.kind, arrivals.cluster_id,
    cast(sum(case when arrivals.gap_hours <= edges.x then arrivals.arrival_count else 0 end) as bigint) as hits,
    cast(sum(arrivals.arrival_count) as bigint) as total
from arrivals
cross join ({{ reference_edges('gap_hours') }}) as edges
group by edges.x, arrivals.kind, arrivals.cluster_id
union all
select
    'max_slowdown' as measure,
    'all' as class,
    edges.x,
    drives.kind, drives.cluster_id,
    count(case when drives.max_slowdown >= edges.x then 1 end) as hits,
    count(*) as total
from drives
cross join ({{ reference_edges('max_slowdown') }}) as edges
group by edges.x, drives.kind, drives.cluster_id
union all
select
    'slow_hours' as measure,
    'all' as class,
    edges.x,
    drives.kind, drives.cluster_id,
    count(case when drives.slow_hours <= edges.x then 1 end) as hits,
    count(*) as total
from drives
cross join ({{ reference_edges('slow_hours') }}) as edges
where drives.slow_hours is not null
group by edges.x, drives.kind, drives.cluster_id
