-- Reads of files. Grain: experiment_id, config_id, phase, run_number, file_name, read_index.
select
    reads.experiment_id,
    reads.config_id,
    reads.phase,
    reads.run_number,
    reads.file_name,
    reads.read_index,
    reads."bytes",
    reads.requests,
    reads.started_s,
    reads.ended_s,
    reads.active_seconds,
    greatest(reads.ended_s - reads.started_s - reads.active_seconds, 0) as idle_seconds,
    reads."bytes" / nullif(reads.active_seconds, 0) as throughput_bytes_per_s,
    maps.extent_count
from {{ ref('step_lab__file_reads') }} as reads
left join {{ ref('step_lab__mapped_runs') }} as runs
    on reads.experiment_id = runs.experiment_id
    and reads.config_id = runs.config_id
    and reads.phase = runs.phase
    and reads.run_number = runs.run_number
left join {{ ref('fct_file_fragments') }} as maps
    on reads.experiment_id = maps.experiment_id
    and reads.config_id = maps.config_id
    and reads.phase = maps.phase
    and runs.map_run = maps.run_number
    and reads.file_name = maps.file_name
