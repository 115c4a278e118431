-- The distribution of completions in each run: at every x the share of requests up to it, and below it. Grain: run_id, policy, x.
select
    curves.run_id, curves.policy, curves.x,
    cast(curves.requests_up_to as double) / runs.requests as y,
    cast(curves.requests_below as double) / runs.requests as y_left,
    runs.requests
from {{ source('toleraid', 'tolerance_curves') }} as curves
inner join {{ source('toleraid', 'tolerance_runs') }} as runs on curves.run_id = runs.run_id and curves.policy = runs.policy
