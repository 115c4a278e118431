-- Reads in order of time, with what is usual around each. Grain: experiment_id, config_id, phase, position.
with reads as (
    select
        experiment_id,
        config_id,
        phase,
        run_number,
        file_name,
        read_index,
        started_s,
        ended_s,
        (started_s + ended_s) / 2 as midpoint_s,
        throughput_bytes_per_s
    from {{ ref('fct_file_reads') }}
    where throughput_bytes_per_s is not null
),

-- what is usual around a read, then again without the reads that are low by it
first_pass as (
    select
        *,
        median(throughput_bytes_per_s) over (
            partition by experiment_id, config_id, phase
            order by midpoint_s asc
            range between {{ var('lab_baseline_seconds') }} preceding and {{ var('lab_baseline_seconds') }} following
        ) as first_baseline
    from reads
),

second_pass as (
    select
        *,
        coalesce(
            median(case when throughput_bytes_per_s >= {{ var('lab_low_ratio') }} * first_baseline then throughput_bytes_per_s end) over (
                partition by experiment_id, config_id, phase
                order by midpoint_s asc
                range between {{ var('lab_baseline_seconds') }} preceding and {{ var('lab_baseline_seconds') }} following
            ),
            first_baseline
        ) as baseline_bytes_per_s
    from first_pass
)

select
    experiment_id,
    config_id,
    phase,
    row_number() over (
        partition by experiment_id, config_id, phase order by midpoint_s asc, run_number asc, file_name asc, read_index asc
    ) as position,
    run_number,
    file_name,
    read_index,
    started_s,
    ended_s,
    midpoint_s,
    throughput_bytes_per_s,
    baseline_bytes_per_s,
    throughput_bytes_per_s < {{ var('lab_low_ratio') }} * baseline_bytes_per_s as is_low
from second_pass
