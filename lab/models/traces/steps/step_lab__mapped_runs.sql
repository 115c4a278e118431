-- Which run's map of files holds for a run: its own, else that of the last run before it. Grain: experiment_id, config_id, phase, run_number.
select
    runs.experiment_id, runs.config_id, runs.phase, runs.run_number,
    max(maps.run_number) as map_run
from {{ ref('dim_runs') }} as runs
inner join {{ ref('step_lab__file_maps') }} as maps
    on runs.experiment_id = maps.experiment_id
    and runs.config_id = maps.config_id
    and runs.phase = maps.phase
    and runs.run_number >= maps.run_number
group by runs.experiment_id, runs.config_id, runs.phase, runs.run_number
