-- Throughput, latency and their ratio in each run, to tell buffers apart. Grain: experiment_id, config_id, test, buffer_bytes, run.
with runs as (
    select
        experiment_id, config_id, buffer_bytes,
        "pass" as test,
        value,
        row_number() over (partition by experiment_id, config_id, buffer_bytes, "pass" order by run_number asc, phase asc, repetition asc) as run
    from {{ ref('step_lab__sync_writes') }}
),

measured_runs as (
    select * from runs
    union all
    -- the passes of a run are measured apart: the first of one with the first of the other
    select experiment_id, config_id, buffer_bytes, 'ratio' as test, throughput.value / nullif(latency.value, 0) as value, run
    from (select * from runs where test = 'throughput') as throughput
    inner join (select * from runs where test = 'latency') as latency using (experiment_id, config_id, buffer_bytes, run)
)

select
    *,
    '' as "pass",
    'sync_writes' as benchmark,
    0 as size_bytes,
    case test when 'throughput' then 'kB/s' when 'latency' then 'us' else 'kB/s per us' end as unit,
    test <> 'latency' as higher_is_better,
    cast(null as boolean) as is_limited,
    cast(null as varchar) as options
from measured_runs
where value is not null
