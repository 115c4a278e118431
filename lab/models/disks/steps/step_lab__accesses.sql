-- Reads and writes of a device without error, in order of issue, with what each does to the one before.
-- Grain: experiment_id, config_id, phase, run_number, file, device, request_index.
with requests as (
    select
        experiment_id, config_id, phase, run_number, file, device, request_index, direction, sector, sectors, issued_ns, completed_ns,
        file_name,
        lag(direction) over trace as previous_direction,
        lag(sector + sectors) over trace as previous_end,
        max(completed_ns) over (
            partition by experiment_id, config_id, phase, run_number, file, device
            order by request_index asc
            rows between unbounded preceding and 1 preceding
        ) as busy_until_ns
    from {{ ref('fct_block_requests') }}
    where direction in ('read', 'write') and error = 0
    window trace as (partition by experiment_id, config_id, phase, run_number, file, device order by request_index asc)
)

select
    * exclude (previous_direction, previous_end, busy_until_ns),
    coalesce(sector <> previous_end, false) as is_seek,
    coalesce(sector = previous_end and direction <> previous_direction, false) as is_direction_switch,
    case when sector <> previous_end then abs(sector - previous_end) end as seek_sectors,
    -- of its time at the device, what no earlier request covers
    greatest(issued_ns, coalesce(busy_until_ns, issued_ns)) as busy_from_ns,
    greatest(completed_ns, coalesce(busy_until_ns, completed_ns)) as busy_to_ns
from requests
