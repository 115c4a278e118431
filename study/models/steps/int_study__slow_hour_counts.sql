-- Slow drive-hours by imbalance and by exact multiples: hits of total by RAID group. Grain: measure, class, x, kind, cluster_id.
with slow_hours as (
    select slow_hours.*, drives.kind as drive_kind
    from {{ source('intermediate', 'int_drive_hours__slow') }} as slow_hours
    inner join {{ source('intermediate', 'int_drives') }} as drives on slow_hours.drive_id = drives.drive_id
),

multiples_of_median as (
    select
        drive_kind, raid_group_id,
        {{ is_in_ticks('latency_us') }} and {{ is_in_ticks('median_latency_us') }} as is_quantised
    from slow_hours
    where {{ is_multiple('latency_us', 'median_latency_us') }}
),

-- RAID-hours whose slowest drive is at exactly twice the median
double_tails as (
    select raid_group_id, count(distinct hour_utc) as raid_hours
    from slow_hours
    where {{ nanoseconds('latency_us') }} = 2 * {{ nanoseconds('median_latency_us') }} and {{ nanoseconds('median_latency_us') }} > 0
        and not exists (
            select 1
            from slow_hours as slower
            where slower.raid_group_id = slow_hours.raid_group_id
                and slower.hour_utc = slow_hours.hour_utc
                and slower.slowdown > slow_hours.slowdown
        )
    group by raid_group_id
),

raid_group_hours as (
    select days.raid_group_id, coalesce(kinds.kind, 'unknown') as kind, sum(days.raid_hours) as raid_hours
    from {{ source('intermediate', 'int_raid_group_days') }} as days
    left join {{ source('intermediate', 'int_raid_groups__kinds') }} as kinds on days.raid_group_id = kinds.raid_group_id
    group by days.raid_group_id, coalesce(kinds.kind, 'unknown')
),

imbalances as (
    select 'rate' as imbalance, drive_kind, raid_group_id, rate_imbalance as ratio
    from slow_hours
    where is_slow and rate_imbalance is not null
    union all
    select 'size' as imbalance, drive_kind, raid_group_id, size_imbalance as ratio
    from slow_hours
    where is_slow and size_imbalance is not null
),

raid_groups as (
    select drives.kind, days.raid_group_id, sum(days.slowdown_hours) as slowdown_hours
    from {{ source('intermediate', 'int_drive_days') }} as days
    inner join {{ source('intermediate', 'int_drives') }} as drives on days.drive_id = drives.drive_id
    group by drives.kind, days.raid_group_id
    having sum(days.slowdown_hours) > 0
),

multiples as (
    select drive_kind, raid_group_id, count(*) as multiple_count, count(case when is_quantised then 1 end) as quantised_count
    from multiples_of_median
    group by drive_kind, raid_group_id
),

exact_hours as (
    select drive_kind, raid_group_id, slowdown, count(*) as hour_count
    from slow_hours
    where slowdown in (select x from ({{ reference_edges('slowdown_is') }}) as reference_edges)
    group by drive_kind, raid_group_id, slowdown
)

select
    'slow_' || imbalances.imbalance || '_imbalance' as measure,
    'all' as class,
    edges.x,
    imbalances.drive_kind as kind,
    imbalances.raid_group_id as cluster_id,
    count(case when imbalances.ratio >= edges.x then 1 end) as hits,
    count(*) as total
from imbalances
inner join (
    select 'rate' as imbalance, x from ({{ reference_edges('slow_rate_imbalance') }}) as rate_edges
    union all
    select 'size' as imbalance, x from ({{ reference_edges('slow_size_imbalance') }}) as size_edges
) as edges on imbalances.imbalance = edges.imbalance
group by imbalances.imbalance, edges.x, imbalances.drive_kind, imbalances.raid_group_id
union all
select
    'slow_imbalanced' as measure,
    imbalance as class,
    cast({{ var('imbalanced') }} as double) as x,
    drive_kind as kind,
    raid_group_id as cluster_id,
    count(case when ratio >= {{ var('imbalanced') }} then 1 end) as hits,
    count(*) as total
from imbalances
group by imbalance, drive_kind, raid_group_id
union all
select
    'slowdown_is' as measure,
    'all' as class,
    edges.x,
    raid_groups.kind,
    raid_groups.raid_group_id as cluster_id,
    coalesce(exact_hours.hour_count, 0) as hits,
    cast(raid_groups.slowdown_hours as bigint) as total
from raid_groups
cross join ({{ reference_edges('slowdown_is') }}) as edges
left join exact_hours on raid_groups.kind = exact_hours.drive_kind and raid_groups.raid_group_id = exact_hours.raid_group_id and edges.x = exact_hours.slowdown
union all
select
    'slowdown_is_multiple' as measure,
    'all' as class,
    cast(null as double) as x,
    raid_groups.kind,
    raid_groups.raid_group_id as cluster_id,
    coalesce(multiples.multiple_count, 0) as hits,
    cast(raid_groups.slowdown_hours as bigint) as total
from raid_groups
left join multiples on raid_groups.kind = multiples.drive_kind and raid_groups.raid_group_id = multiples.raid_group_id
union all
select
    'multiple_of_250_us' as measure,
    'all' as class,
    cast(null as double) as x,
    drive_kind as kind,
    raid_group_id as cluster_id,
    quantised_count as hits,
    multiple_count as total
from multiples
union all
select
    'tail_1_multiple' as measure,
    'all' as class,
    cast(2 as double) as x,
    raid_group_hours.kind,
    raid_group_hours.raid_group_id as cluster_id,
    coalesce(double_tails.raid_hours, 0) as hits,
    cast(raid_group_hours.raid_hours as bigint) as total
from raid_group_hours
left join double_tails on raid_group_hours.raid_group_id = double_tails.raid_group_id
