{%- set lab_normal_deviations = 3 %}{#- a latency is normal up to the median plus this many (scaled) median absolute deviations -#}
{%- set lab_normal_requests = 3 %}{#- an extent has recovered at the first of this many normal requests in a row -#}
-- How long requests are slow when a read enters an extent.
-- Grain: experiment_id, config_id, phase, run_number, file_name, read_index, extent_index.
with requests as (
    select
        requests.*,
        row_number() over (extent_read order by requests.position asc) as place,
        count(*) over (extent_read) as requests,
        extents.sectors * 512 as extent_bytes
    from {{ ref('step_lab__read_requests') }} as requests
    inner join {{ ref('step_lab__mapped_runs') }} as runs using (experiment_id, config_id, phase, run_number)
    inner join {{ ref('fct_extents') }} as extents
        on runs.experiment_id = extents.experiment_id
        and runs.config_id = extents.config_id
        and runs.phase = extents.phase
        and runs.map_run = extents.run_number
        and requests.file_name = extents.file_name
        and requests.extent_index = extents.extent_index
    window extent_read as (
        partition by
            requests.experiment_id, requests.config_id, requests.phase, requests.run_number, requests.file_name, requests.read_index,
            requests.extent_index
    )
),

-- what is normal: requests of the commonest size in the second half of large extents
late_requests as (
    select
        requests.experiment_id, requests.config_id, requests.sectors, requests.latency_us,
        count(*) over (partition by requests.experiment_id, requests.config_id, requests.sectors) as alike
    from requests
    inner join {{ ref('dim_experiments') }} as experiments on requests.experiment_id = experiments.experiment_id
    where requests.extent_bytes >= experiments.large_extent_bytes and requests.place > requests.requests // 2
),

usual_requests as (
    select *, median(latency_us) over (partition by experiment_id, config_id, sectors) as median_us
    from late_requests
    qualify rank() over (partition by experiment_id, config_id order by alike desc, sectors desc) = 1
),

normal_files as (
    select
        experiment_id, config_id,
        min(median_us) + {{ lab_normal_deviations }} * 1.4826 * median(abs(latency_us - median_us)) as normal_latency_us
    from usual_requests
    group by experiment_id, config_id
),

judged_requests as (
    select
        requests.*,
        normal_files.normal_latency_us,
        bool_or(requests.latency_us > normal_files.normal_latency_us) over (
            partition by
                requests.experiment_id, requests.config_id, requests.phase, requests.run_number, requests.file_name, requests.read_index,
                requests.extent_index
            order by requests.place asc
            rows between current row and {{ lab_normal_requests - 1 }} following
        ) as is_slow_soon
    from requests
    left join normal_files on requests.experiment_id = normal_files.experiment_id and requests.config_id = normal_files.config_id
),

recovered_files as (
    select
        experiment_id, config_id, phase, run_number, file_name, read_index, extent_index,
        min(extent_bytes) as extent_bytes,
        min(requests) as requests,
        min(normal_latency_us) as normal_latency_us,
        case
            when min(normal_latency_us) is not null
                then coalesce(min(place) filter (where not is_slow_soon) - 1, min(requests))
        end as recovery_requests,
        case when min(normal_latency_us) is not null then bool_or(not is_slow_soon) end as is_recovered,
        min(queued_ns) filter (where place = 1) as queued_ns,
        list(completed_ns order by place asc) as completed_ns
    from judged_requests
    group by experiment_id, config_id, phase, run_number, file_name, read_index, extent_index
)

select
    * exclude (queued_ns, completed_ns),
    case when recovery_requests = 0 then 0 else (completed_ns[recovery_requests] - queued_ns) / 1000.0 end as recovery_us,
    recovery_requests / cast(requests as double) as recovery_ratio
from recovered_files
