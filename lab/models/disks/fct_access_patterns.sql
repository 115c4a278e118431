-- How sequential the requests of a trace are, and how busy they keep the device. Grain: experiment_id, config_id, phase, run_number, file, device.
select
    experiment_id, config_id, phase, run_number, file, device,
    count(*) as requests,
    cast(sum(sectors) * 512 as bigint) as "bytes",
    count(*) filter (where is_seek) as seeks,
    count(*) filter (where is_direction_switch) as direction_switches,
    1 + seeks + direction_switches as runs,
    "bytes" / (1.0 + seeks + direction_switches) as mean_run_bytes,
    avg(seek_sectors) as mean_seek_sectors,
    (max(completed_ns) - min(issued_ns)) / 1e9 as window_seconds,
    sum(busy_to_ns - busy_from_ns) / 1e9 as busy_seconds,
    seeks / nullif(window_seconds, 0) as seeks_per_second,
    seeks / ("bytes" / 1048576.0) as seeks_per_mib,
    busy_seconds / nullif(window_seconds, 0) as utilisation,
    "bytes" / nullif(window_seconds, 0) as bandwidth_bytes_per_s
from {{ ref('step_lab__accesses') }}
group by experiment_id, config_id, phase, run_number, file, device
