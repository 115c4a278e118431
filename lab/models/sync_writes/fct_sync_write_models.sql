-- What batching small writes into one block would give, beside what was measured. Grain: experiment_id, config_id, buffer_bytes.
with predicted as (
    select
        points.experiment_id,
        points.config_id,
        points.buffer_bytes,
        points.mean_throughput_kb_per_s,
        points.buffer_bytes / 1024.0 / nullif(summary.minimum_latency_us, 0) * 1e6 as predicted_kb_per_s,
        points.buffer_bytes <= filesystems.block_bytes as is_in_range
    from {{ ref('fct_sync_write_points') }} as points
    inner join {{ ref('fct_sync_write_summary') }} as summary
        on points.experiment_id = summary.experiment_id and points.config_id = summary.config_id
    left join {{ ref('dim_configs') }} as configs on points.experiment_id = configs.experiment_id and points.config_id = configs.config_id
    left join {{ ref('dim_filesystems') }} as filesystems
        on configs.experiment_id = filesystems.experiment_id and configs.filesystem_id = filesystems.filesystem_id
)

select
    experiment_id,
    config_id,
    buffer_bytes,
    predicted_kb_per_s,
    (predicted_kb_per_s - mean_throughput_kb_per_s) / nullif(mean_throughput_kb_per_s, 0) as model_error_ratio,
    is_in_range
from predicted
