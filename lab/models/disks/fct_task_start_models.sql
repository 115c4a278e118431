{%- set lab_heartbeat_seconds = 3 %}{#- of a node to its master where the factor heartbeat_seconds does not say: Hadoop's default -#}
{%- set lab_fast_heartbeat_seconds = 0.3 %}{#- what it might be -#}
{%- set lab_jvm_seconds = 1 %}{#- that a new JVM costs a task -#}
{%- set lab_large_task_bytes = 5368709120 %}{#- data of a large task -#}
-- Cost of waiting between tasks, and gain from faster starts or larger tasks: a model. Grain: experiment_id, config_id.
{%- set fast, jvm = lab_fast_heartbeat_seconds, lab_jvm_seconds %}
with measured_configs as (
    select
        experiment_id, config_id,
        sum(mean_task_seconds * tasks) / sum(tasks) as read_seconds,
        sum(mean_gap_seconds * idle_gaps) / nullif(sum(idle_gaps), 0) as gap_seconds,
        sum(mean_task_bytes * tasks) / nullif(sum(tasks) filter (where mean_task_bytes is not null), 0) as task_bytes,
        sum(busy_seconds) / nullif(sum(makespan_seconds * slots), 0) as observed_utilisation
    from {{ ref('fct_task_utilisation') }}
    group by experiment_id, config_id
),

factors as (
    select
        experiment_id, config_id,
        max(try_cast(value as double)) filter (where factor = 'heartbeat_seconds') as heartbeat_seconds,
        bool_or(lower(value) = 'true') filter (where factor = 'jvm_reuse') as is_jvm_reused
    from {{ ref('dim_config_factors') }}
    group by experiment_id, config_id
),

-- Spark launches tasks as slots report, in JVMs that stay: what is usual for Hadoop says nothing of it
tools as (
    select experiment_id, config_id, bool_and(tool = 'spark-events') as is_spark
    from {{ ref('step_lab__listings') }}
    where tool in ('job-history', 'spark-events', 'tasks')
    group by experiment_id, config_id
),

causes as (
    select
        measured_configs.experiment_id, measured_configs.config_id, measured_configs.read_seconds, measured_configs.gap_seconds, measured_configs.observed_utilisation,
        coalesce(factors.heartbeat_seconds, case when not tools.is_spark then {{ lab_heartbeat_seconds }} end) as heartbeat_seconds,
        case when coalesce(factors.is_jvm_reused, case when not tools.is_spark then false end) then 0.0
            when factors.is_jvm_reused is not null or not tools.is_spark then {{ jvm }}
        end as jvm_seconds,
        case when measured_configs.task_bytes > 0 then greatest(1.0, {{ lab_large_task_bytes }} / measured_configs.task_bytes) end as data_ratio
    from measured_configs
    left join factors on measured_configs.experiment_id = factors.experiment_id and measured_configs.config_id = factors.config_id
    inner join tools on measured_configs.experiment_id = tools.experiment_id and measured_configs.config_id = tools.config_id
),

-- one cause changed at a time; a wait cannot fall below 0
changed_causes as (
    select
        *,
        coalesce(gap_seconds, heartbeat_seconds / 2 + jvm_seconds) as wait_seconds,
        read_seconds / nullif(read_seconds + wait_seconds, 0) as predicted_utilisation,
        -- greatest() passes nulls over
        case
            when heartbeat_seconds is not null then greatest(wait_seconds - greatest(heartbeat_seconds - {{ fast }}, 0) / 2, 0)
        end as fast_wait_seconds,
        case when jvm_seconds is not null then greatest(wait_seconds - jvm_seconds, 0) end as reused_wait_seconds,
        case
            when heartbeat_seconds + jvm_seconds is not null
                then greatest(wait_seconds - greatest(heartbeat_seconds - {{ fast }}, 0) / 2 - jvm_seconds, 0)
        end as least_wait_seconds
    from causes
)

select
    experiment_id, config_id, read_seconds, wait_seconds, predicted_utilisation, observed_utilisation,
    read_seconds / nullif(read_seconds + fast_wait_seconds, 0) - predicted_utilisation as gain_if_heartbeat_300ms,
    read_seconds / nullif(read_seconds + reused_wait_seconds, 0) - predicted_utilisation as gain_if_jvm_reused,
    read_seconds * data_ratio / nullif(read_seconds * data_ratio + wait_seconds, 0) - predicted_utilisation as gain_if_5gb_tasks,
    read_seconds * data_ratio / nullif(read_seconds * data_ratio + least_wait_seconds, 0) - predicted_utilisation as gain_all,
    case
        when heartbeat_seconds + jvm_seconds is null
            then 'Spark has neither a heartbeat nor a JVM for each task: set heartbeat_seconds and jvm_reuse to model them'
    end as reason
from changed_causes
