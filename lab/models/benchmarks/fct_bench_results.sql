-- Results of benchmarks. Grain: experiment_id, config_id, phase, run_number, pass, benchmark, test, parameter, size_bytes, repetition.
select
    experiment_id, config_id, phase, run_number,
    "pass",
    benchmark, test, parameter, size_bytes,
    row_number() over (
        partition by experiment_id, config_id, phase, run_number, "pass", benchmark, test, parameter, size_bytes
        order by delivery_seq asc, listing asc, "row" asc
    ) as repetition,
    value, unit,
    unit not in ('us', 'ms') as higher_is_better,
    p999, file
from {{ ref('step_lab__results') }}
where not is_superseded
