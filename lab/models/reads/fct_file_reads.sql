-- Reads of files. Grain: experiment_id, config_id, phase, run_number, file_name, read_index.
select
    reads.*,
    greatest(reads.ended_s - reads.started_s - reads.active_seconds, 0) as idle_seconds,
    reads."bytes" / nullif(reads.active_seconds, 0) as throughput_bytes_per_s,
    maps.extent_count
from {{ ref('step_lab__file_reads') }} as reads
left join {{ ref('step_lab__mapped_runs') }} as runs using (experiment_id, config_id, phase, run_number)
left join {{ ref('fct_file_fragments') }} as maps
    on reads.experiment_id = maps.experiment_id
    and reads.config_id = maps.config_id
    and reads.phase = maps.phase
    and runs.map_run = maps.run_number
    and reads.file_name = maps.file_name
