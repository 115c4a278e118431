-- How a request of a read overlaps those before and after it.
-- Grain: experiment_id, config_id, phase, run_number, file_name, read_index, position.
with requests as (
    select
        *,
        lag(completed_ns) over reading as before_completed_ns,
        lead(issued_ns) over reading as next_issued_ns
    from {{ ref('step_lab__read_requests') }}
    window reading as (partition by experiment_id, config_id, phase, run_number, file_name, read_index order by position asc)
)

select
    experiment_id, config_id, phase, run_number, file_name, read_index, position, extent_index,
    case
        when issued_ns >= before_completed_ns or next_issued_ns >= completed_ns then 'disjoint'
        when completed_ns <= before_completed_ns then 'nested'
        when next_issued_ns <= before_completed_ns then 'deeper'
        else 'overlap'
    end as overlap_class,
    case
        when overlap_class = 'overlap'
            then abs((completed_ns - next_issued_ns) - (before_completed_ns - issued_ns)) / 1000.0
    end as imbalance_us,
    latency_us
from requests
where before_completed_ns is not null and next_issued_ns is not null
