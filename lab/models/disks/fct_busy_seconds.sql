{%- set lab_idle_ratio = 0.05 %}{#- a device is idle in a second in which it is busy for less -#}
{%- set lab_most_seconds = 1000000 %}{#- of a longer trace no busy share by second is computed -#}
-- The share of each second of a trace in which a device was busy. Grain: experiment_id, config_id, phase, run_number, file, device, bin.
with windows as (
    select
        experiment_id, config_id, phase, run_number, file, device,
        min(issued_ns) as begun_ns,
        greatest(cast(ceil((max(completed_ns) - min(issued_ns)) / 1e9) as bigint), 1) as bins
    from {{ ref('step_lab__accesses') }}
    group by experiment_id, config_id, phase, run_number, file, device
),

-- bins beyond this count are not laid out: one garbled time must not fill the memory
bins as (
    select * exclude (bins), unnest(range(bins)) as bin
    from windows
    where bins <= {{ lab_most_seconds }}
),

parts as (
    select
        accesses.experiment_id, accesses.config_id, accesses.phase, accesses.run_number, accesses.file, accesses.device,
        accesses.busy_from_ns - windows.begun_ns as from_ns,
        accesses.busy_to_ns - windows.begun_ns as to_ns,
        unnest(range(
            (accesses.busy_from_ns - windows.begun_ns) // 1000000000, (accesses.busy_to_ns - windows.begun_ns - 1) // 1000000000 + 1
        )) as bin
    from {{ ref('step_lab__accesses') }} as accesses
    inner join windows using (experiment_id, config_id, phase, run_number, file, device)
    where accesses.busy_to_ns > accesses.busy_from_ns and windows.bins <= {{ lab_most_seconds }}
),

busy_parts as (
    select
        experiment_id, config_id, phase, run_number, file, device, bin,
        cast(sum(least(to_ns, (bin + 1) * 1000000000) - greatest(from_ns, bin * 1000000000)) as bigint) as busy_ns
    from parts
    group by experiment_id, config_id, phase, run_number, file, device, bin
)

select
    bins.experiment_id, bins.config_id, bins.phase, bins.run_number, bins.file, bins.device, bins.bin,
    coalesce(busy_parts.busy_ns, 0) as busy_ns,
    coalesce(busy_parts.busy_ns, 0) / 1e9 as busy_ratio,
    coalesce(busy_parts.busy_ns, 0) / 1e9 < {{ lab_idle_ratio }} as is_idle
from bins
left join busy_parts using (experiment_id, config_id, phase, run_number, file, device, bin)
