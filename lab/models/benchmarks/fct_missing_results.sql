-- Cells with fewer results than expected. Grain: experiment_id, config_id, phase, pass, benchmark, test, parameter, size_bytes.
with writes as (
    select
        experiment_id, config_id,
        '' as phase,
        "pass",
        'iozone_' || "pass" as benchmark,
        'write' as test,
        buffer_bytes as parameter,
        cast(0 as bigint) as size_bytes,
        run_number
    from {{ ref('step_lab__sync_writes') }}
),

phases as (
    select
        experiment_id, config_id, phase,
        "pass",
        benchmark, test, parameter, size_bytes, run_number
    from {{ ref('fct_bench_results') }}
    inner join {{ ref('dim_experiments') }} using (experiment_id)
    where kind = 'before_after' and phase in ('before', 'after')
),

expected_results as (
    -- synchronous writes: every buffer that any configuration has, in both passes
    select
        configs.experiment_id, configs.config_id,
        '' as phase,
        passes."pass",
        'iozone_' || passes."pass" as benchmark,
        'write' as test,
        buffers.parameter,
        cast(0 as bigint) as size_bytes
    from (select distinct experiment_id, parameter from writes) as buffers
    inner join {{ ref('dim_configs') }} as configs using (experiment_id)
    cross join (select unnest(['throughput', 'latency']) as "pass") as passes
    union all
    -- before and after: every cell that a configuration has in either phase
    select cells.* replace (both_phases.phase as phase)
    from (select distinct * exclude (run_number) replace ('' as phase) from phases) as cells
    cross join (select unnest(['before', 'after']) as phase) as both_phases
),

counted_results as (
    select
        expected_results.*,
        experiments.expected_runs,
        count(found.run_number) as n,
        coalesce(list(distinct found.run_number) filter (where found.run_number is not null), []) as runs
    from expected_results
    inner join {{ ref('dim_experiments') }} as experiments using (experiment_id)
    left join (select * from writes union all select * from phases) as found
        using (experiment_id, config_id, phase, "pass", benchmark, test, parameter, size_bytes)
    group by all
)

select
    * exclude (runs),
    array_to_string(list_sort(list_filter(range(1, expected_runs + 1), lambda run: not list_contains(runs, run))), ', ') as missing_runs
from counted_results
where n < expected_runs
