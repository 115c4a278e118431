{%- set lab_trigger_ratio = 1.5 %}{#- what triggers temporal slowdowns is undecided where the next cause varies less than this many times as much -#}
-- How often temporal slowdowns come, and what triggers them. Grain: experiment_id, config_id, phase.
with phases as (
    select
        experiment_id, config_id, phase,
        count(*) as reads,
        min(least_drop_ratio) as least_drop_ratio
    from {{ ref('step_lab__timed_reads') }}
    group by experiment_id, config_id, phase
),

instances as (
    select
        *,
        lead(started_s) over (partition by experiment_id, config_id, phase order by started_s asc, instance asc) as next_started_s
    from {{ ref('fct_temporal_slowdowns') }}
),

-- of instances that start together the last one
starts as (
    select * from instances where next_started_s is distinct from started_s
),

-- reads that start between the start of an instance and that of the next
paces as (
    select starts.experiment_id, starts.config_id, starts.phase, starts.instance, count(*) as reads
    from {{ ref('fct_file_reads') }} as reads
    asof inner join starts
        on reads.experiment_id = starts.experiment_id
        and reads.config_id = starts.config_id
        and reads.phase = starts.phase
        and reads.started_s >= starts.started_s
    group by starts.experiment_id, starts.config_id, starts.phase, starts.instance
),

-- what the device of the configuration has written, from snapshot to snapshot; unix times are counted from the start of the experiment
snapshots as (
    select
        listings.experiment_id, listings.config_id, listings.phase,
        listings.offset_s + snapshots.at_s
        - case when listings.offset_s + snapshots.at_s >= 1e9 then epoch(experiments.started_at) else 0 end as at_s,
        -- of snapshots of one time the last one
        max(snapshots.sectors_written) as sectors_written
    from {{ source('lab', 'disk_snapshots') }} as snapshots
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    inner join {{ ref('dim_configs') }} as configs on listings.experiment_id = configs.experiment_id and listings.config_id = configs.config_id
    inner join {{ ref('dim_devices') }} as devices
        on configs.experiment_id = devices.experiment_id
        and configs.device_id = devices.device_id
        and snapshots.device = devices.kernel_name
    inner join {{ ref('dim_experiments') }} as experiments on listings.experiment_id = experiments.experiment_id
    group by all
),

steps as (
    select
        *,
        lag(sectors_written) over series as before_sectors,
        lead(sectors_written) over series as next_sectors,
        lead(at_s) over series as next_at_s
    from snapshots
    where at_s is not null
    window series as (partition by experiment_id, config_id, phase order by at_s asc)
),

written_steps as (
    select
        *,
        512 * sum(greatest(sectors_written - coalesce(before_sectors, sectors_written), 0)) over series as bytes_written,
        count(case when sectors_written < before_sectors then 1 end) over series as resets
    from steps
    window series as (
        partition by experiment_id, config_id, phase order by at_s asc rows between unbounded preceding and current row
    )
),

-- at the start of an instance, on a straight line between two snapshots; unknown outside the series and across a reset
marks as (
    select
        instances.experiment_id, instances.config_id, instances.phase, instances.instance,
        written_steps.resets,
        case
            when instances.started_s = written_steps.at_s then written_steps.bytes_written
            when written_steps.next_sectors >= written_steps.sectors_written
                then
                    written_steps.bytes_written
                    + 512 * (written_steps.next_sectors - written_steps.sectors_written)
                    * (instances.started_s - written_steps.at_s) / (written_steps.next_at_s - written_steps.at_s)
        end as bytes_written
    from instances
    asof inner join written_steps
        on instances.experiment_id = written_steps.experiment_id
        and instances.config_id = written_steps.config_id
        and instances.phase = written_steps.phase
        and instances.started_s >= written_steps.at_s
),

gaps as (
    select
        instances.experiment_id, instances.config_id, instances.phase, instances.duration_seconds, instances.mean_drop_ratio,
        instances.next_started_s - instances.started_s as gap_seconds,
        case when instances.next_started_s is not null then coalesce(paces.reads, 0) end as gap_reads,
        case when marks.resets = next_marks.resets then next_marks.bytes_written - marks.bytes_written end as gap_bytes
    from instances
    left join paces using (experiment_id, config_id, phase, instance)
    left join marks using (experiment_id, config_id, phase, instance)
    left join marks as next_marks
        on instances.experiment_id = next_marks.experiment_id
        and instances.config_id = next_marks.config_id
        and instances.phase = next_marks.phase
        and instances.instance + 1 = next_marks.instance
),

periods as (
    select
        experiment_id, config_id, phase,
        count(*) as instances,
        count(gap_seconds) as gaps,
        {{ of_sample('avg', 'gap_seconds', 'gap_seconds is not null') }} as mean_period_seconds,
        median(gap_seconds) as median_period_seconds,
        {{ of_sample('stddev_samp', 'gap_seconds', 'gap_seconds is not null') }}
        / nullif({{ of_sample('avg', 'gap_seconds', 'gap_seconds is not null') }}, 0) as period_cv,
        {{ of_sample('stddev_samp', 'gap_reads', 'gap_reads is not null') }}
        / nullif({{ of_sample('avg', 'gap_reads', 'gap_reads is not null') }}, 0) as reads_cv,
        case
            when count(gap_bytes) = count(gap_seconds)
                then
                    {{ of_sample('stddev_samp', 'gap_bytes', 'gap_bytes is not null') }}
                    / nullif({{ of_sample('avg', 'gap_bytes', 'gap_bytes is not null') }}, 0)
        end as bytes_written_cv,
        {{ of_sample('avg', 'duration_seconds') }} as mean_duration_seconds,
        {{ of_sample('avg', 'mean_drop_ratio') }} as mean_drop_ratio
    from gaps
    group by experiment_id, config_id, phase
),

ranked_periods as (
    select
        *,
        list_sort(list_filter([
            { 'cv': period_cv, 'trigger': 'time' }, { 'cv': reads_cv, 'trigger': 'reads' }, { 'cv': bytes_written_cv, 'trigger': 'writes' }
        ], lambda cause: cause.cv is not null)) as causes
    from periods
)

select
    phases.*,
    ranked_periods.* exclude (experiment_id, config_id, phase, instances, gaps, causes),
    coalesce(ranked_periods.instances, 0) as instances,
    case
        when ranked_periods.gaps < 3 or len(ranked_periods.causes) = 0 then null
        -- of causes that vary alike none is the trigger
        when ranked_periods.causes[2].cv < {{ lab_trigger_ratio }} * ranked_periods.causes[1].cv or ranked_periods.causes[2].cv = ranked_periods.causes[1].cv then 'undecided'
        else ranked_periods.causes[1].trigger
    end as "trigger"
from phases
left join ranked_periods using (experiment_id, config_id, phase)
