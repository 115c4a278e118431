-- Stretches of reads that are slow for the time being. Grain: experiment_id, config_id, phase, instance.
with low_reads as (
    select
        experiment_id, config_id, phase, position,
        -- a single read that is not low may lie between, but no pause
        coalesce(position - lag(position) over reads > 2 or pauses > lag(pauses) over reads, true) as is_first
    from {{ ref('step_lab__timed_reads') }}
    where is_low
    window reads as (partition by experiment_id, config_id, phase order by position asc)
),

stretches as (
    select
        experiment_id, config_id, phase,
        min(position) as first_position,
        max(position) as last_position
    from (
        select
            *,
            count(case when is_first then 1 end) over (
                partition by experiment_id, config_id, phase order by position asc rows between unbounded preceding and current row
            ) as stretch
        from low_reads
    ) as counted
    group by experiment_id, config_id, phase, stretch
    having count(*) >= 2
),

instances as (
    select
        stretches.experiment_id, stretches.config_id, stretches.phase, stretches.first_position,
        min(reads.started_s) as started_s,
        max(reads.ended_s) as ended_s,
        count(*) as reads,
        min(reads.throughput_bytes_per_s) as min_throughput_bytes_per_s,
        {{ of_sample('avg', 'reads.throughput_bytes_per_s') }} as mean_throughput_bytes_per_s,
        min(reads.baseline_bytes_per_s) filter (where reads.position = stretches.first_position) as baseline_bytes_per_s
    from {{ ref('step_lab__timed_reads') }} as reads
    asof inner join stretches
        on reads.experiment_id = stretches.experiment_id
        and reads.config_id = stretches.config_id
        and reads.phase = stretches.phase
        and reads.position >= stretches.first_position
    where reads.position <= stretches.last_position
    group by stretches.experiment_id, stretches.config_id, stretches.phase, stretches.first_position
)

select
    * exclude (first_position),
    row_number() over (partition by experiment_id, config_id, phase order by first_position asc) as instance,
    ended_s - started_s as duration_seconds,
    (baseline_bytes_per_s - min_throughput_bytes_per_s) / baseline_bytes_per_s as drop_ratio,
    (baseline_bytes_per_s - mean_throughput_bytes_per_s) / baseline_bytes_per_s as mean_drop_ratio
from instances
