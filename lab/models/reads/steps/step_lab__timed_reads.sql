{%- set lab_baseline_seconds = 1800 %}{#- before and after a read, over which its usual throughput is a median -#}
{%- set lab_least_drop_ratio = 0.08 %}{#- a read this much below the usual throughput is slow for the time being -#}
{%- set lab_noise_deviations = 3 %}{#- but no drop counts of fewer than this many (scaled) median absolute deviations of single reads -#}
{%- set lab_pause_seconds = 10 %}{#- a time without reads that is longer is a pause -#}
{%- set lab_pause_gaps = 10 %}{#- if it is also longer than this many usual gaps between reads -#}
{%- set lab_order_reads = 10 %}{#- low ones, and others: of fewer the order says nothing -#}
{%- set lab_slow_file_reads = 5 %}{#- of a file with fewer, nothing is said -#}
{%- set lab_slow_file_share = 0.9 %}{#- of its reads below what is usual: a slow file, where others have at most the rest of 1 -#}
-- Reads in order of time, with what is usual around each. Grain: experiment_id, config_id, phase, position.
with reads as (
    select
        experiment_id, config_id, phase, run_number, file_name, read_index, started_s, ended_s,
        (started_s + ended_s) / 2 as midpoint_s,
        throughput_bytes_per_s
    from {{ ref('fct_file_reads') }}
    where throughput_bytes_per_s is not null
),

placed_reads as (
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
    from placed_reads
),

-- what single reads vary by anyway, as a standard deviation, which slow reads barely touch; and how long it usually is to the next read
centred_reads as (
    select
        *,
        throughput_bytes_per_s / nullif(first_baseline, 0)
        - median(throughput_bytes_per_s / nullif(first_baseline, 0)) over (partition by experiment_id, config_id, phase) as deviation,
        median(gap_s) over (partition by experiment_id, config_id, phase) as usual_gap_s
    from first_pass
),

noisy_files as (
    select
        *,
        greatest(
            {{ lab_least_drop_ratio }},
            {{ lab_noise_deviations }} * 1.4826 * median(abs(deviation)) over (partition by experiment_id, config_id, phase)
        ) as least_drop_ratio,
        coalesce(gap_s > {{ lab_pause_seconds }} and gap_s > {{ lab_pause_gaps }} * usual_gap_s, false) as is_after_pause
    from centred_reads
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
    from noisy_files
),

lows as (
    select
        *,
        throughput_bytes_per_s < (1 - least_drop_ratio) * baseline_bytes_per_s as is_below
    from second_pass
),

by_file as (
    select
        *,
        count(*) over files as reads_of_file,
        avg(case when is_below then 1.0 else 0 end) over files as share_below
    from lows
    window files as (partition by experiment_id, config_id, phase, file_name)
),

-- a file that is slow at every read is a slow file, however it is read in turn with others
marked_reads as (
    select
        *,
        reads_of_file >= {{ lab_slow_file_reads }} and share_below >= {{ lab_slow_file_share }}
        and min(share_below) over (partition by experiment_id, config_id, phase) <= 1 - {{ lab_slow_file_share }} as is_slow_file
    from by_file
),

-- runs of low reads and of others: as many as chance makes, or fewer (Wald and Wolfowitz)
candidates as (
    select *, is_below and not is_slow_file as is_candidate from marked_reads
),

changes as (
    select
        *,
        coalesce(is_candidate <> lag(is_candidate) over (partition by experiment_id, config_id, phase order by position asc), true) as is_change
    from candidates
),

counted_changes as (
    select
        *,
        count(*) over phases as reads,
        sum(case when is_candidate then 1.0 else 0 end) over phases as low_reads,
        sum(case when is_change then 1.0 else 0 end) over phases as runs
    from changes
    window phases as (partition by experiment_id, config_id, phase)
),

spread_reads as (
    select
        *,
        2 * low_reads * (reads - low_reads) as twice
    from counted_changes
),

ordered_reads as (
    select
        *,
        case
            when low_reads >= {{ lab_order_reads }} and reads - low_reads >= {{ lab_order_reads }}
                then (runs - 1 - twice / reads) / sqrt(twice * (twice - reads) / (power(reads, 2) * (reads - 1)))
        end as order_z
    from spread_reads
)

select
    experiment_id, config_id, phase, run_number, file_name, read_index, started_s, ended_s, midpoint_s, throughput_bytes_per_s, position,
    least_drop_ratio, baseline_bytes_per_s, is_slow_file,
    low_reads / reads as low_ratio,
    -- how often chance gives no more runs than these
    case when order_z < 0 then student_two_sided_p(order_z, cast(1e9 as double)) / 2 when order_z >= 0 then 0.5 end as order_p,
    -- a filtered count(*) over a running window takes DuckDB a hundred times as long
    count(case when is_after_pause then 1 end) over (
        partition by experiment_id, config_id, phase order by position asc rows between unbounded preceding and current row
    ) as pauses,
    -- of reads in random order none is slow for a time
    is_candidate and coalesce(order_p < {{ var('lab_level') }}, true) as is_low
from ordered_reads
