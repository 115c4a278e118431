-- Summary of a configuration's buffer sizes. Grain: experiment_id, config_id.
with flat_phases as (
    select
        experiment_id, config_id,
        -- a pair of phase 1 is flat up to its greater size
        max(next_bytes) filter (where phase = 1) as latency_flat_until_bytes,
        min(buffer_bytes) filter (where phase = 3) as throughput_flat_from_bytes
    from {{ ref('fct_sync_write_phases') }}
    group by experiment_id, config_id
),

points as (
    select
        experiment_id, config_id,
        arg_max(buffer_bytes, { 'ratio': ratio, 'is_smaller': -buffer_bytes }) filter (where ratio is not null) as best_ratio_buffer_bytes,
        max(ratio) as best_ratio,
        min(buffer_bytes) filter (where mean_throughput_kb_per_s > 0 and mean_latency_us > 0) as smallest_bytes,
        max(detectable_throughput_ratio) as detectable_throughput_ratio,
        max(detectable_latency_ratio) as detectable_latency_ratio,
        arg_min_null(mean_latency_us, buffer_bytes) as minimum_latency_us
    from {{ ref('fct_sync_write_points') }}
    group by experiment_id, config_id
)

select
    points.* exclude (smallest_bytes),
    coalesce(flat_phases.latency_flat_until_bytes, points.smallest_bytes) as latency_flat_until_bytes,
    flat_phases.throughput_flat_from_bytes
from points
left join flat_phases on points.experiment_id = flat_phases.experiment_id and points.config_id = flat_phases.config_id
