-- Values of a run that are compared: results of benchmarks, access patterns of traces, extents of files. Grain: that of fct_bench_results.
with configs as (
    select configs.experiment_id, configs.config_id, devices.major_minor
    from {{ ref('dim_configs') }} as configs
    left join {{ ref('dim_devices') }} as devices using (experiment_id, device_id)
),

runs as (
    -- a trace without duration has no bandwidth
    select
        experiment_id, config_id, patterns.phase, patterns.run_number,
        'trace' as benchmark,
        unnest(['bandwidth', 'run_length', 'seeks']) as test,
        unnest([patterns.bandwidth_bytes_per_s, patterns.mean_run_bytes, patterns.seeks_per_mib]) as result,
        unnest(['B/s', 'B', '1/MiB']) as unit
    from configs
    inner join {{ ref('fct_access_patterns') }} as patterns using (experiment_id, config_id)
    -- without the number of the config's device every device of a trace counts
    where coalesce(configs.major_minor = patterns.device, true)
    union all
    -- files of one writer may be larger than those of several: extents are counted by bytes
    select
        experiment_id, config_id, phase, run_number,
        'filefrag' as benchmark,
        'extents' as test,
        sum(extent_count) * 1048576.0 / nullif(sum(allocated_bytes), 0) as result,
        '1/MiB' as unit
    from {{ ref('fct_file_fragments') }}
    group by experiment_id, config_id, phase, run_number
    union all
    -- tails that the summary of fio lacks, of the jobs that it has
    select
        experiment_id, config_id, phase, run_number,
        'fio' as benchmark,
        tails.job || '.' || tails.direction || '.' || tails.metric || '_p99' as test,
        tails.p99_us as result,
        'us' as unit
    from {{ ref('fct_log_tails') }} as tails
    inner join (
        select experiment_id, config_id, phase, run_number, list(test) as tests
        from {{ ref('fct_bench_results') }}
        where benchmark = 'fio'
        group by experiment_id, config_id, phase, run_number
    ) as summaries using (experiment_id, config_id, phase, run_number)
    where tails.is_whole_run
        and tails.p99_us is not null
        and list_contains(summaries.tests, tails.job || '.' || tails.direction || '.bw')
        and not list_contains(summaries.tests, tails.job || '.' || tails.direction || '.' || tails.metric || '_p99')
)

select
    experiment_id, config_id, phase, run_number,
    "pass",
    benchmark, test, parameter, size_bytes, repetition, value, unit, higher_is_better, is_limited, is_cached, options
from {{ ref('fct_bench_results') }}
union all
select
    experiment_id, config_id, phase, run_number,
    '' as "pass",
    benchmark, test,
    0 as parameter,
    0 as size_bytes,
    1 as repetition,
    {{ of_sample('avg', 'result') }} as value,
    unit,
    unit not in ('us', '1/MiB') as higher_is_better,
    null as is_limited,
    null as is_cached,
    null as options
from runs
where result is not null
group by experiment_id, config_id, phase, run_number, benchmark, test, unit
