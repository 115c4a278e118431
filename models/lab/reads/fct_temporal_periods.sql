-- How often temporal slowdowns come, and what triggers them. Grain: experiment_id, config_id, phase.
with instances as (
    select
        *,
        lead(started_s) over (partition by experiment_id, config_id, phase order by started_s asc, instance asc) as next_started_s
    from {{ ref('fct_temporal_slowdowns') }}
),

-- reads that start between the start of an instance and that of the next
paces as (
    select
        instances.experiment_id,
        instances.config_id,
        instances.phase,
        instances.instance,
        count(*) as reads
    from {{ ref('fct_file_reads') }} as reads
    asof inner join instances
        on reads.experiment_id = instances.experiment_id
        and reads.config_id = instances.config_id
        and reads.phase = instances.phase
        and reads.started_s >= instances.started_s
    group by instances.experiment_id, instances.config_id, instances.phase, instances.instance
),

gaps as (
    select
        instances.experiment_id,
        instances.config_id,
        instances.phase,
        instances.duration_seconds,
        instances.mean_drop_ratio,
        instances.next_started_s - instances.started_s as gap_seconds,
        case when instances.next_started_s is not null then coalesce(paces.reads, 0) end as gap_reads
    from instances
    left join paces
        on instances.experiment_id = paces.experiment_id
        and instances.config_id = paces.config_id
        and instances.phase = paces.phase
        and instances.instance = paces.instance
),

periods as (
    select
        experiment_id,
        config_id,
        phase,
        count(*) as instances,
        count(gap_seconds) as gaps,
        {{ of_sample('avg', 'gap_seconds', 'gap_seconds is not null') }} as mean_period_seconds,
        median(gap_seconds) as median_period_seconds,
        {{ of_sample('stddev_samp', 'gap_seconds', 'gap_seconds is not null') }}
        / nullif({{ of_sample('avg', 'gap_seconds', 'gap_seconds is not null') }}, 0) as period_cv,
        {{ of_sample('stddev_samp', 'gap_reads', 'gap_reads is not null') }}
        / nullif({{ of_sample('avg', 'gap_reads', 'gap_reads is not null') }}, 0) as reads_cv,
        -- bytes written between starts are those of diskstats, which no tool of the lab reads yet
        cast(null as double) as bytes_written_cv,
        {{ of_sample('avg', 'duration_seconds') }} as mean_duration_seconds,
        {{ of_sample('avg', 'mean_drop_ratio') }} as mean_drop_ratio
    from gaps
    group by experiment_id, config_id, phase
),

ranked as (
    select
        *,
        list_sort(list_filter([
            { 'cv': period_cv, 'trigger': 'time' }, { 'cv': reads_cv, 'trigger': 'reads' }, { 'cv': bytes_written_cv, 'trigger': 'writes' }
        ], lambda cause: cause.cv is not null)) as causes
    from periods
)

select
    experiment_id,
    config_id,
    phase,
    instances,
    mean_period_seconds,
    median_period_seconds,
    period_cv,
    reads_cv,
    bytes_written_cv,
    mean_duration_seconds,
    mean_drop_ratio,
    case
        when gaps < 3 or len(causes) = 0 then null
        -- of causes that vary alike none is the trigger
        when causes[2].cv < {{ var('lab_trigger_ratio') }} * causes[1].cv or causes[2].cv = causes[1].cv then 'undecided'
        else causes[1].trigger
    end as "trigger"
from ranked
