-- Cells with fewer results than expected. Grain: experiment_id, config_id, phase, pass, benchmark, test, parameter, size_bytes.
with expected as (
    -- synchronous writes: every buffer that any configuration has, in both passes
    select
        configs.experiment_id,
        configs.config_id,
        '' as phase,
        passes."pass",
        'iozone_' || passes."pass" as benchmark,
        'write' as test,
        buffers.parameter,
        cast(0 as bigint) as size_bytes
    from (select distinct experiment_id, buffer_bytes as parameter from {{ ref('step_lab__sync_writes') }}) as buffers
    inner join {{ ref('dim_configs') }} as configs on buffers.experiment_id = configs.experiment_id
    cross join (select unnest(['throughput', 'latency']) as "pass") as passes
    union all
    -- before and after: every cell that a configuration has in either phase
    select
        cells.experiment_id,
        cells.config_id,
        phases.phase,
        cells."pass",
        cells.benchmark,
        cells.test,
        cells.parameter,
        cells.size_bytes
    from (
        select distinct
            results.experiment_id,
            results.config_id,
            results."pass",
            results.benchmark,
            results.test,
            results.parameter,
            results.size_bytes
        from {{ ref('fct_bench_results') }} as results
        inner join {{ ref('dim_experiments') }} as experiments on results.experiment_id = experiments.experiment_id
        where experiments.kind = 'before_after' and results.phase in ('before', 'after')
    ) as cells
    cross join (select unnest(['before', 'after']) as phase) as phases
),

found as (
    select
        experiment_id,
        config_id,
        '' as phase,
        "pass",
        'iozone_' || "pass" as benchmark,
        'write' as test,
        buffer_bytes as parameter,
        cast(0 as bigint) as size_bytes,
        run_number
    from {{ ref('step_lab__sync_writes') }}
    union all
    select
        results.experiment_id,
        results.config_id,
        results.phase,
        results."pass",
        results.benchmark,
        results.test,
        results.parameter,
        results.size_bytes,
        results.run_number
    from {{ ref('fct_bench_results') }} as results
    inner join {{ ref('dim_experiments') }} as experiments on results.experiment_id = experiments.experiment_id
    where experiments.kind = 'before_after'
),

counted as (
    select
        expected.*,
        experiments.expected_runs,
        count(found.run_number) as n,
        coalesce(list(distinct found.run_number) filter (where found.run_number is not null), []) as runs
    from expected
    inner join {{ ref('dim_experiments') }} as experiments using (experiment_id)
    left join found using (experiment_id, config_id, phase, "pass", benchmark, test, parameter, size_bytes)
    group by all
)

select
    * exclude (runs),
    array_to_string(list_sort(list_filter(range(1, expected_runs + 1), lambda run: not list_contains(runs, run))), ', ') as missing_runs
from counted
where n < expected_runs
