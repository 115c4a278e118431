-- Runs of an experiment: files that share a configuration, phase and number. Grain: experiment_id, config_id, phase, run_number.
select
    experiment_id, config_id, phase, run_number,
    count(distinct file) as files,
    min(offset_s) as started_s,
    cast(null as double) as ended_s
from {{ ref('step_lab__listings') }}
group by experiment_id, config_id, phase, run_number
