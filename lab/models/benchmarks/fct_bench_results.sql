{%- set lab_limit_ratio = 0.95 %}{#- a rate that reaches this share of the limit that its job was given is the limit -#}
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
    p999, options,
    value >= {{ lab_limit_ratio }} * rate_limit as is_limited,
    benchmark = 'fio' and regexp_matches(test, '[.]read[.][a-z0-9_]+$') and list_contains(string_split(options, chr(10)), 'direct=0') as is_cached,
    file
from {{ ref('step_lab__results') }}
where not is_superseded
