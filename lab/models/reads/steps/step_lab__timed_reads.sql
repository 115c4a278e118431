{%- set lab_baseline_seconds = 1800 %}{#- before and after a read, over which its usual throughput is a median -#}
{%- set lab_least_drop_ratio = 0.08 %}{#- a read this much below the usual throughput is slow for the time being -#}
{%- set lab_noise_deviations = 3 %}{#- but no drop counts of fewer than this many (scaled) median absolute deviations of single reads -#}
{%- set lab_pause_seconds = 10 %}{#- a time without reads that is longer is a pause -#}
{%- set lab_pause_gaps = 10 %}{#- if it is also longer than this many usual gaps between reads -#}
-- Reads in order of time, with what is usual around each. Grain: experiment_id, config_id, phase, position.
with reads as (
    select
        experiment_id, config_id, phase, run_number, file_name, read_index, started_s, ended_s,
        (started_s + ended_s) / 2 as midpoint_s,
        throughput_bytes_per_s
    from {{ ref('fct_file_reads') }}
    where throughput_bytes_per_s is not null
),

placed as (
    select
        *,
        row_number() over (
            partition by experiment_id, config_id, phase order by midpoint_s asc, run_number asc, file_name asc, read_index asc
        ) as position
    from reads
),

-- what is usual around a read, then again without the reads that are low by it
first_pass as (
    select
        *,
        started_s - max(ended_s) over (
            partition by experiment_id, config_id, phase order by position asc rows between unbounded preceding and 1 preceding
        ) as gap_s,
        median(throughput_bytes_per_s) over (
            partition by experiment_id, config_id, phase
            order by midpoint_s asc
            range between {{ lab_baseline_seconds }} preceding and {{ lab_baseline_seconds }} following
        ) as first_baseline
    from placed
),

-- what single reads vary by anyway, as a standard deviation, which slow reads barely touch; and how long it usually is to the next read
centred as (
    select
        *,
        throughput_bytes_per_s / nullif(first_baseline, 0)
        - median(throughput_bytes_per_s / nullif(first_baseline, 0)) over (partition by experiment_id, config_id, phase) as deviation,
        median(gap_s) over (partition by experiment_id, config_id, phase) as usual_gap_s
    from first_pass
),

noisy as (
    select
        *,
        greatest(
            {{ lab_least_drop_ratio }},
            {{ lab_noise_deviations }} * 1.4826 * median(abs(deviation)) over (partition by experiment_id, config_id, phase)
        ) as least_drop_ratio,
        coalesce(gap_s > {{ lab_pause_seconds }} and gap_s > {{ lab_pause_gaps }} * usual_gap_s, false) as is_after_pause
    from centred
),

second_pass as (
    select
        *,
        coalesce(
            median(case when throughput_bytes_per_s >= (1 - least_drop_ratio) * first_baseline then throughput_bytes_per_s end) over (
                partition by experiment_id, config_id, phase
                order by midpoint_s asc
                range between {{ lab_baseline_seconds }} preceding and {{ lab_baseline_seconds }} following
            ),
            first_baseline
        ) as baseline_bytes_per_s
    from noisy
)

select
    * exclude (gap_s, first_baseline, deviation, usual_gap_s, is_after_pause),
    -- a filtered count(*) over a running window takes DuckDB a hundred times as long
    count(case when is_after_pause then 1 end) over (
        partition by experiment_id, config_id, phase order by position asc rows between unbounded preceding and current row
    ) as pauses,
    throughput_bytes_per_s < (1 - least_drop_ratio) * baseline_bytes_per_s as is_low
from second_pass
