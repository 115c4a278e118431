-- Throughput or latency of each synchronous write, of a configuration's largest file alone. Grain: that of fct_bench_results.
with written_results as (
    select
        results.*,
        max(results.size_bytes) over (partition by results.experiment_id, results.config_id) as largest_bytes
    from {{ ref('fct_bench_results') }} as results
    inner join {{ ref('dim_experiments') }} as experiments on results.experiment_id = experiments.experiment_id
    where experiments.kind = 'sync_writes'
        and results.test = 'write'
        and results.benchmark in ('iozone_throughput', 'iozone_latency')
        and results.parameter > 0
)

select
    experiment_id, config_id,
    case benchmark when 'iozone_throughput' then 'throughput' else 'latency' end as "pass",
    parameter as buffer_bytes,
    size_bytes, run_number, phase, repetition, file,
    case unit
        when 'kB/s' then value
        when 'B/s' then value / 1024
        when 'MiB/s' then value * 1024
        when 'us' then value
        when 'ms' then value * 1000
    end as value
from written_results
where size_bytes = largest_bytes
    and (benchmark = 'iozone_latency') = (unit in ('us', 'ms'))
    and unit <> 'ops/s'
