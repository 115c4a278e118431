-- Requests that a device completed, and the file that each belongs to.
-- Grain: experiment_id, config_id, phase, run_number, file, device, request_index.
{%- set holds = 'requests.is_of_config and requests.sector < extents.sector + extents.sectors' %}
with requests as (
    select
        listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file, listings.listed_at,
        listings.offset_s,
        issues.device,
        row_number() over (
            partition by listings.experiment_id, listings.listed_at, issues.device order by issues.issued_ns asc, issues.line asc
        ) as request_index,
        issues.direction, issues.sector, issues.sectors, issues.queued_ns, issues.issued_ns, issues.completed_ns, issues.error,
        -- without the number of the config's device every device of a trace counts
        coalesce(devices.major_minor = issues.device, true) as is_of_config
    from {{ ref('step_lab__issues') }} as issues
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    inner join {{ ref('dim_configs') }} as configs using (experiment_id, config_id)
    left join {{ ref('dim_devices') }} as devices on configs.experiment_id = devices.experiment_id and configs.device_id = devices.device_id
    where issues.outcome = 'completed'
),

extents as (
    select
        runs.experiment_id, runs.config_id, runs.phase, runs.run_number,
        extents.file_name, extents.extent_index, extents.logical_start_bytes, extents.sector, extents.sectors
    from {{ ref('step_lab__mapped_runs') }} as runs
    inner join {{ ref('fct_extents') }} as extents
        on runs.experiment_id = extents.experiment_id
        and runs.config_id = extents.config_id
        and runs.phase = extents.phase
        and runs.map_run = extents.run_number
    -- of these the map does not say where they lie
    where not regexp_matches(extents.flags, 'unknown_loc|delalloc|inline')
),

placed_requests as (
    select
        requests.*,
        case when {{ holds }} then extents.file_name end as file_name,
        case when {{ holds }} then extents.extent_index end as extent_index,
        case
            when {{ holds }}
                then extents.logical_start_bytes + (requests.sector - extents.sector) * 512
        end as logical_start_bytes
    from requests
    asof left join extents
        on requests.experiment_id = extents.experiment_id
        and requests.config_id = extents.config_id
        and requests.phase = extents.phase
        and requests.run_number = extents.run_number
        and requests.sector >= extents.sector
),

begun_requests as (
    select
        *,
        file_name is not null and direction = 'read' and error = 0 as is_file_read,
        -- a read of a file begins with its first byte, and with the first request of a trace
        coalesce(
            logical_start_bytes = 0
            or lag(1) over (
                partition by experiment_id, config_id, phase, run_number, listed_at, file_name, direction = 'read' and error = 0
                order by issued_ns asc, device asc, request_index asc
            ) is null,
            false
        ) as is_first_of_read
    from placed_requests
)

select
    * exclude (listed_at, is_of_config, is_file_read, is_first_of_read),
    (completed_ns - issued_ns) / 1000.0 as latency_us,
    (issued_ns - queued_ns) / 1000.0 as queue_us,
    case
        when is_file_read
            then cast(count(case when is_file_read and is_first_of_read then 1 end) over (
                partition by experiment_id, config_id, phase, run_number, file_name
                order by offset_s + issued_ns / 1e9 asc, listed_at asc, issued_ns asc, device asc, request_index asc
                rows between unbounded preceding and current row
            ) as bigint)
    end as read_index
from begun_requests
