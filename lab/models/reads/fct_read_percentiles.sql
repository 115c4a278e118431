-- How latency, throughput and recovery are distributed, side by side where reads are slow and where not.
-- Grain: experiment_id, config_id, measure, split, part, percentile.
with requests as (
    select
        *,
        offset_s + issued_ns / 1e9 as at_s,
        row_number() over (
            partition by experiment_id, config_id, phase, run_number, file_name, read_index, extent_index order by position asc
        ) as place
    from {{ ref('step_lab__read_requests') }}
),

timed_requests as (
    select 'latency' as measure, experiment_id, config_id, phase, file_name, at_s, latency_us as value
    from requests
    union all
    select 'throughput' as measure, experiment_id, config_id, phase, file_name, midpoint_s as at_s, throughput_bytes_per_s as value
    from {{ ref('step_lab__timed_reads') }}
),

onsets as (
    select experiment_id, config_id, file_name, onset_hour * 3600 as onset_s
    from {{ ref('fct_permanent_slowdowns') }}
    where onset_hour is not null
),

measured_requests as (
    select measure, experiment_id, config_id, 'all' as split, 'all' as part, value
    from timed_requests

    union all

    select
        timed_requests.measure, timed_requests.experiment_id, timed_requests.config_id,
        'permanent' as split,
        case when coalesce(timed_requests.at_s >= onsets.onset_s, timed_requests.phase = 'after') then 'after' else 'before' end as part,
        timed_requests.value
    from timed_requests
    left join onsets using (experiment_id, config_id, file_name)
    where onsets.onset_s is not null or timed_requests.phase in ('before', 'after')

    union all

    select
        timed_requests.measure, timed_requests.experiment_id, timed_requests.config_id,
        'temporal' as split,
        case when timed_requests.at_s <= instances.ended_s then 'inside' else 'outside' end as part,
        timed_requests.value
    from timed_requests
    semi join {{ ref('fct_temporal_slowdowns') }} as slow using (experiment_id, config_id, phase)
    asof left join {{ ref('fct_temporal_slowdowns') }} as instances
        on timed_requests.experiment_id = instances.experiment_id
        and timed_requests.config_id = instances.config_id
        and timed_requests.phase = instances.phase
        and timed_requests.at_s >= instances.started_s

    union all

    select
        'latency' as measure,
        requests.experiment_id, requests.config_id,
        'recovery' as split,
        case when requests.place <= extents.recovery_requests then 'during' else 'after' end as part,
        requests.latency_us as value
    from requests
    inner join {{ ref('fct_extent_reads') }} as extents
        using (experiment_id, config_id, phase, run_number, file_name, read_index, extent_index)
    where extents.recovery_requests is not null

    union all

    -- extents of a size and of up to twice that
    select
        'recovery' as measure,
        experiment_id, config_id,
        'extent_bytes' as split,
        cast(cast(power(2, floor(log2(extent_bytes))) as bigint) as varchar) as part,
        recovery_requests as value
    from {{ ref('fct_extent_reads') }}
    where recovery_requests is not null
),

parts as (
    select
        measure, experiment_id, config_id, split, part,
        count(*) as n,
        quantile_disc(
            value, [{% for percentile in range(1, 100) %}{{ percentile / 100 }}{{ ', ' if not loop.last }}{% endfor %}]
        ) as "values"
    from measured_requests
    group by measure, experiment_id, config_id, split, part
),

-- two distributions are at most so far apart (Kolmogorov and Smirnov)
pairs as (
    select
        measure, experiment_id, config_id, split,
        min(part) as one,
        arg_min(n, part) as of_one,
        arg_max(n, part) as of_other
    from parts
    group by measure, experiment_id, config_id, split
    having count(*) = 2
),

-- rows that follow each other, not ranges of values: those take DuckDB minutes over a million
steps as (
    select
        measured_requests.measure, measured_requests.experiment_id, measured_requests.config_id, measured_requests.split, measured_requests.value,
        min(pairs.of_one) as of_one,
        min(pairs.of_other) as of_other,
        count(*) filter (where measured_requests.part = pairs.one) as ones,
        count(*) filter (where measured_requests.part <> pairs.one) as others
    from measured_requests
    inner join pairs using (measure, experiment_id, config_id, split)
    group by measured_requests.measure, measured_requests.experiment_id, measured_requests.config_id, measured_requests.split, measured_requests.value
),

distances as (
    select measure, experiment_id, config_id, split, max(abs(below_of_one / of_one - below_of_other / of_other)) as ks_distance
    from (
        select
            *,
            cast(sum(ones) over below as double) as below_of_one,
            cast(sum(others) over below as double) as below_of_other
        from steps
        window below as (
            partition by measure, experiment_id, config_id, split order by value asc rows between unbounded preceding and current row
        )
    ) as counted
    group by measure, experiment_id, config_id, split
)

select
    parts.experiment_id, parts.config_id, parts.measure, parts.split, parts.part,
    percentiles.percentile,
    parts.n,
    cast(parts."values"[percentiles.percentile] as double) as value,
    distances.ks_distance
from parts
left join distances using (measure, experiment_id, config_id, split)
cross join (select unnest(range(1, 100)) as percentile) as percentiles
