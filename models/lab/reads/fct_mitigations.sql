-- How much each slowdown costs in a configuration, and whether it masks what the default one shows. Grain: experiment_id, slowdown, config_id.
with intrinsic as (
    select
        experiment_id,
        config_id,
        arg_max(drop_ratio, extent_count) as drop_ratio
    from {{ ref('fct_fragmentation_effect') }}
    group by experiment_id, config_id
),

temporal as (
    select
        reads.experiment_id,
        reads.config_id,
        coalesce({{ of_sample('avg', 'instances.mean_drop_ratio', 'instances.mean_drop_ratio is not null') }}, 0) as drop_ratio,
        -- of the mean, by Student's t over the instances
        student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(count(instances.mean_drop_ratio) - 1, 0) as double))
        * {{ of_sample('stddev_samp', 'instances.mean_drop_ratio', 'instances.mean_drop_ratio is not null') }}
        / sqrt(count(instances.mean_drop_ratio)) as half_width
    from (select distinct experiment_id, config_id from {{ ref('step_lab__timed_reads') }}) as reads
    left join {{ ref('fct_temporal_slowdowns') }} as instances
        on reads.experiment_id = instances.experiment_id and reads.config_id = instances.config_id
    group by reads.experiment_id, reads.config_id
),

-- before and after: the phases, else the onset of files that have one
sided as (
    select
        reads.experiment_id,
        reads.config_id,
        reads.throughput_bytes_per_s,
        case when reads.phase in ('before', 'after') then reads.phase = 'after' end as is_after_phase,
        floor((reads.started_s + reads.ended_s) / 7200) >= onsets.onset_hour as is_after_onset
    from {{ ref('fct_file_reads') }} as reads
    left join {{ ref('fct_permanent_slowdowns') }} as onsets
        on reads.experiment_id = onsets.experiment_id
        and reads.config_id = onsets.config_id
        and reads.file_name = onsets.file_name
),

permanent as (
    select
        experiment_id,
        config_id,
        1 - coalesce(
            median(throughput_bytes_per_s) filter (where is_after_phase) / median(throughput_bytes_per_s) filter (where not is_after_phase),
            median(throughput_bytes_per_s) filter (where is_after_onset) / median(throughput_bytes_per_s) filter (where not is_after_onset)
        ) as drop_ratio
    from sided
    group by experiment_id, config_id
),

drops as (
    select 'intrinsic' as slowdown, experiment_id, config_id, drop_ratio, null as half_width from intrinsic
    union all
    select 'temporal' as slowdown, experiment_id, config_id, drop_ratio, half_width from temporal
    union all
    select 'permanent' as slowdown, experiment_id, config_id, drop_ratio, null as half_width from permanent
),

defaults as (
    select
        experiment_id,
        min(config_id) as config_id
    from {{ ref('dim_configs') }}
    where is_default
    group by experiment_id
)

select
    drops.experiment_id,
    drops.slowdown,
    drops.config_id,
    drops.drop_ratio,
    drops.drop_ratio - drops.half_width as low_drop_ratio,
    drops.drop_ratio + drops.half_width as high_drop_ratio,
    of_default.drop_ratio as default_drop_ratio,
    case
        when of_default.drop_ratio > {{ var('lab_unmasked_ratio') }} then abs(drops.drop_ratio) < {{ var('lab_masked_ratio') }}
    end as is_masked
from drops
left join defaults on drops.experiment_id = defaults.experiment_id
left join drops as of_default
    on drops.experiment_id = of_default.experiment_id
    and drops.slowdown = of_default.slowdown
    and defaults.config_id = of_default.config_id
where drops.drop_ratio is not null
