-- Latency of reads that had the device to themselves, by size. Grain: experiment_id, config_id, phase, request_bytes.
with requests as (
    select
        experiment_id,
        config_id,
        phase,
        direction,
        error,
        sectors * 512 as request_bytes,
        latency_us,
        coalesce(max(completed_ns) over (
            partition by experiment_id, config_id, phase, run_number, file, device
            order by request_index asc
            rows between unbounded preceding and 1 preceding
        ) <= issued_ns, true)
        and coalesce(lead(issued_ns) over (
            partition by experiment_id, config_id, phase, run_number, file, device order by request_index asc
        ) >= completed_ns, true) as is_alone
    from {{ ref('fct_block_requests') }}
),

sizes as (
    select
        experiment_id,
        config_id,
        phase,
        request_bytes,
        count(*) as n,
        median(latency_us) as median_latency_us
    from requests
    where is_alone and direction = 'read' and error = 0
    group by experiment_id, config_id, phase, request_bytes
)

select
    sizes.experiment_id,
    sizes.config_id,
    sizes.phase,
    sizes.request_bytes,
    sizes.n,
    sizes.median_latency_us,
    sizes.median_latency_us - before.median_latency_us as increase_us,
    (sizes.median_latency_us - before.median_latency_us) / nullif(before.median_latency_us, 0) as increase_ratio
from sizes
left join sizes as before
    on sizes.experiment_id = before.experiment_id
    and sizes.config_id = before.config_id
    and sizes.request_bytes = before.request_bytes
    and before.phase = 'before'
    and sizes.phase = 'after'
