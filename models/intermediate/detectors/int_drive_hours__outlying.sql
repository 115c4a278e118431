{{ config(meta={'made': 'by_day'}) }}
{%- set hdfs_min_drives = 5 %}{#- fewer are not compared: dfs.datanode.min.outlier.detection.disks -#}
{%- set hdfs_low_us = 5000 %}{#- nothing faster is slow: HDFS's bound for slow peers; for slow disks it takes 20000, which silences flash -#}
{%- set hdfs_deviations = 3 %}
{%- set hdfs_mad_factor = 1.4826 %}{#- standard deviation over median absolute deviation of a normal distribution -#}
{%- set ceph_min_drives = 5 %}{#- mgr_fail_slow_osd_min_osds -#}
{%- set zfs_min_drives = 5 %}{#- LAT_CHILDREN_MIN -#}
{%- set zfs_greatest_rise = 5 %}{#- LAT_OUTLIER_LIMIT / 4 -#}
-- Drive-hours that a rule of outliers speaks of, with what it compared. Grain: drive_id, hour_utc.
-- Most RAID-hours hold none, which their medians show and three sums: quartiles and deviations are taken of the others only.
with peers as (
    select
        drive_id, raid_group_id, hour_utc, latency_us, median_latency_us, slowdown, day_utc,
        -- the squares of ten million drives fit into 38 digits. Wider than it need be: DuckDB keeps products of decimals of up to 18 digits in 18
        cast({{ capped_nanoseconds('latency_us') }} as decimal(20, 0)) as latency_ns
    from {{ ref('int_drive_hours__notable') }}
    where is_in_population and slowdown is not null
),

raid_hours as (
    select
        raid_group_id, hour_utc,
        count(*) as peer_count,
        max(slowdown) as max_slowdown,
        max(latency_us) as max_latency_us,
        max(median_latency_us) as median_latency_us,
        max(latency_ns) as max_latency_ns,
        sum(latency_ns) as latency_sum_ns,
        -- peers squared times the variance: whole numbers, so the order of the rows leaves no trace
        count(*) * sum(latency_ns * latency_ns) - sum(latency_ns) * sum(latency_ns) as spread_ns
    from peers
    group by raid_group_id, hour_utc
),

suspects as (
    select *
    from raid_hours
    where max_slowdown >= {{ least_outlying_slowdown() }}
        or {{ is_beyond_sigma('max_latency_ns') }}
        or {{ may_be_fail_slow('max_latency_us', 'median_latency_us') }}
),

placed_hours as (
    select
        peers.*,
        suspects.peer_count, suspects.latency_sum_ns, suspects.spread_ns,
        abs(peers.latency_us - peers.median_latency_us) as deviation_us,
        -- the last is the slowest; of equals the smallest drive
        row_number() over (
            partition by peers.raid_group_id, peers.hour_utc order by peers.latency_us asc, peers.drive_id desc
        ) as row_rank
    from peers
    inner join suspects on peers.raid_group_id = suspects.raid_group_id and peers.hour_utc = suspects.hour_utc
),

spreads as (
    select
        raid_group_id, hour_utc,
        {{ median_of_group('deviation_us') }} as mad_us,
        -- the middle one of an odd count is in neither half
        {{ median_of_group('case when 2 * row_rank <= peer_count then latency_us end') }} as q1_latency_us,
        {{ median_of_group('case when 2 * row_rank > peer_count + 1 then latency_us end') }} as q3_latency_us
    from placed_hours
    group by raid_group_id, hour_utc
),

limits as (
    select
        placed_hours.*,
        case
            when placed_hours.peer_count >= {{ hdfs_min_drives }}
                then greatest(
                    cast({{ hdfs_low_us }} as double),
                    placed_hours.median_latency_us * {{ var('hdfs_median_multiple') }},
                    placed_hours.median_latency_us + {{ hdfs_deviations }} * {{ hdfs_mad_factor }} * spreads.mad_us
                )
        end as hdfs_limit_us,
        greatest(spreads.mad_us, cast({{ var('ceph_least_mad_us') }} as double)) as mad_us,
        spreads.q3_latency_us,
        greatest(spreads.q3_latency_us - spreads.q1_latency_us, spreads.q1_latency_us * {{ var('zfs_least_iqr') }}) as iqr_latency_us
    from placed_hours
    inner join spreads on placed_hours.raid_group_id = spreads.raid_group_id and placed_hours.hour_utc = spreads.hour_utc
),

fences as (
    select
        *,
        coalesce(latency_us > hdfs_limit_us, false) as is_hdfs_outlier,
        {{ is_beyond_sigma('latency_ns') }} as is_beyond_sigma,
        case
            when peer_count >= {{ ceph_min_drives }}
                and latency_us >= {{ var('ceph_least_latency_us') }}
                and latency_us - median_latency_us >= {{ var('ceph_score') }} * mad_us
                then (latency_us - median_latency_us) / mad_us
        end as fail_slow_score,
        case
            when row_rank = peer_count and peer_count >= {{ zfs_min_drives }}
                then q3_latency_us + {{ var('zfs_outlier_insensitivity') }} * iqr_latency_us
        end as fence_us
    from limits
),

risen_hours as (
    select
        *,
        case
            when latency_us > fence_us
                then cast(
                    greatest(1.0, floor(least((latency_us - fence_us) / iqr_latency_us, cast({{ zfs_greatest_rise }} as double)))) as bigint
                )
        end as sit_out_rise
    from fences
)

select
    drive_id, hour_utc, raid_group_id, peer_count, latency_us, median_latency_us, hdfs_limit_us, is_hdfs_outlier,
    case when sit_out_rise is not null then fence_us end as fence_us,
    case when sit_out_rise is not null then iqr_latency_us end as iqr_latency_us,
    sit_out_rise,
    case
        when is_beyond_sigma
            then cast(peer_count * latency_ns - latency_sum_ns as double) / sqrt(cast(spread_ns as double))
    end as sigmas_above_mean,
    fail_slow_score,
    case when fail_slow_score is not null then mad_us end as mad_us,
    day_utc
from risen_hours
where is_hdfs_outlier or sit_out_rise is not null or is_beyond_sigma or fail_slow_score is not null
