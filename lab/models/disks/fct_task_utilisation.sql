-- How well the slots of a node are used by tasks. Grain: experiment_id, config_id, phase, run_number, node.
select
    experiment_id, config_id, phase, run_number, node,
    count(*) as tasks,
    count(distinct slot) as slots,
    max(ended_s) - min(started_s) as makespan_seconds,
    {{ of_sample('sum', 'greatest(ended_s - greatest(started_s, coalesce(busy_until_s, started_s)), 0)') }} as busy_seconds,
    busy_seconds / nullif(makespan_seconds * slots, 0) as utilisation,
    count(*) filter (where started_s > busy_until_s) as idle_gaps,
    {{ of_sample('avg', 'started_s - busy_until_s', 'started_s > busy_until_s') }} as mean_gap_seconds,
    {{ of_sample('avg', 'ended_s - started_s') }} as mean_task_seconds,
    avg("bytes") as mean_task_bytes
from {{ ref('fct_tasks') }}
group by experiment_id, config_id, phase, run_number, node
