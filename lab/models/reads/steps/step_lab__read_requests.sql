-- Requests of reads of files, in order of issue. Grain: experiment_id, config_id, phase, run_number, file_name, read_index, position.
select
    experiment_id, config_id, phase, run_number, file_name, read_index,
    row_number() over (
        partition by experiment_id, config_id, phase, run_number, file_name, read_index
        order by issued_ns asc, device asc, request_index asc
    ) as position,
    extent_index, sectors, offset_s, queued_ns, issued_ns, completed_ns, latency_us
from {{ ref('fct_block_requests') }}
where read_index is not null
