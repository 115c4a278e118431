-- Latency of reads that had the device to themselves, by size. Grain: experiment_id, config_id, phase, request_bytes.
with requests as (
    select
        experiment_id, config_id, phase, direction, error,
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

found_requests as (
    select experiment_id, config_id, phase, request_bytes, latency_us, 1 as place
    from requests
    where is_alone and direction = 'read' and error = 0
    union all
    -- a copy of one record is one request, as far as dd can see
    select
        listings.experiment_id, listings.config_id, listings.phase,
        copies."bytes" as request_bytes,
        copies.seconds * 1000000 as latency_us,
        2 as place
    from {{ source('lab', 'dd_copies') }} as copies
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    where copies.records = 1 and copies."bytes" > 0
),

-- the trace of a copy by dd says it better than dd
best_requests as (
    select *
    from found_requests
    qualify place = min(place) over (partition by experiment_id, config_id, phase, request_bytes)
),

sizes as (
    select
        experiment_id, config_id, phase, request_bytes,
        count(*) as n,
        median(latency_us) as median_latency_us
    from best_requests
    group by experiment_id, config_id, phase, request_bytes
),

increases as (
    select
        sizes.*,
        sizes.median_latency_us - before.median_latency_us as increase_us,
        (sizes.median_latency_us - before.median_latency_us) / nullif(before.median_latency_us, 0) as increase_ratio
    from sizes
    left join sizes as before
        on sizes.experiment_id = before.experiment_id
        and sizes.config_id = before.config_id
        and sizes.request_bytes = before.request_bytes
        and before.phase = 'before'
        and sizes.phase = 'after'
),

-- a straight line through the increases of all sizes
lines as (
    select
        *,
        count(increase_us) over of_config as n_sizes,
        regr_slope(increase_us, request_bytes / 1048576.0) over of_config as slope,
        corr(increase_us, request_bytes / 1048576.0) over of_config as r
    from increases
    window of_config as (
        partition by experiment_id, config_id, phase
        order by request_bytes asc
        rows between unbounded preceding and unbounded following
    )
)

select
    * exclude (n_sizes, slope, r),
    case when n_sizes >= 3 and increase_us is not null then slope end as increase_slope_us_per_mib,
    case
        when n_sizes < 3 or increase_us is null then null
        -- equal increases have no correlation
        when slope = 0 then 1
        when abs(r) >= 1 then 0
        else student_two_sided_p(cast(r * sqrt((n_sizes - 2) / (1 - r * r)) as double), cast(n_sizes - 2 as double))
    end as increase_slope_p
from lines
