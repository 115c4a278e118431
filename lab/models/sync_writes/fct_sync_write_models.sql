-- Throughput if small writes were batched into one block, beside the measured one. Grain: experiment_id, config_id, buffer_bytes.
select
    points.experiment_id, points.config_id, points.buffer_bytes,
    points.buffer_bytes / 1024.0 / nullif(summary.minimum_latency_us, 0) * 1e6 as predicted_kb_per_s,
    (predicted_kb_per_s - points.mean_throughput_kb_per_s) / nullif(points.mean_throughput_kb_per_s, 0) as model_error_ratio,
    points.buffer_bytes <= filesystems.block_bytes as is_in_range
from {{ ref('fct_sync_write_points') }} as points
inner join {{ ref('fct_sync_write_summary') }} as summary using (experiment_id, config_id)
left join {{ ref('dim_configs') }} using (experiment_id, config_id)
left join {{ ref('dim_filesystems') }} as filesystems using (experiment_id, filesystem_id)
