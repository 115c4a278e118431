-- How much each slowdown costs in a configuration, and whether it masks what the default one shows. Grain: experiment_id, slowdown, config_id.
with intrinsic as (
    select
        experiment_id,
        config_id,
        files as n,
        drop_ratio,
        low_drop_ratio,
        high_drop_ratio
    from {{ ref('fct_fragmentation_effect') }}
    qualify extent_count = max(extent_count) over (partition by experiment_id, config_id)
),

instances as (
    select
        reads.experiment_id,
        reads.config_id,
        count(instances.mean_drop_ratio) as n,
        coalesce({{ of_sample('avg', 'instances.mean_drop_ratio', 'instances.mean_drop_ratio is not null') }}, 0) as drop_ratio,
        {{ of_sample('stddev_samp', 'instances.mean_drop_ratio', 'instances.mean_drop_ratio is not null') }} as sd_drop_ratio
    from (select distinct experiment_id, config_id from {{ ref('step_lab__timed_reads') }}) as reads
    left join {{ ref('fct_temporal_slowdowns') }} as instances
        on reads.experiment_id = instances.experiment_id and reads.config_id = instances.config_id
    group by reads.experiment_id, reads.config_id
),

-- the interval of a mean, by Student's t
temporal as (
    select
        *,
        student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(n - 1, 0) as double)) * sd_drop_ratio / sqrt(n) as half_width
    from instances
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
    where reads.throughput_bytes_per_s is not null
),

throughputs as (
    select
        experiment_id,
        config_id,
        {%- for change in ('phase', 'onset') %}
        list_sort(list(throughput_bytes_per_s) filter (where not is_after_{{ change }})) as before_{{ change }},
        list_sort(list(throughput_bytes_per_s) filter (where is_after_{{ change }})) as after_{{ change }}{{ ',' if not loop.last }}
        {%- endfor %}
    from sided
    group by experiment_id, config_id
),

changes as (
    select
        experiment_id,
        config_id,
        case when before_phase is not null and after_phase is not null then before_phase else before_onset end as all_before,
        case when before_phase is not null and after_phase is not null then after_phase else after_onset end as all_after
    from throughputs
),

drops as (
    select
        'intrinsic' as slowdown,
        experiment_id,
        config_id,
        n,
        drop_ratio,
        low_drop_ratio,
        high_drop_ratio
    from intrinsic
    union all
    select
        'temporal' as slowdown,
        experiment_id,
        config_id,
        n,
        drop_ratio,
        drop_ratio - half_width as low_drop_ratio,
        drop_ratio + half_width as high_drop_ratio
    from temporal
    union all
    select
        'permanent' as slowdown,
        experiment_id,
        config_id,
        len(all_after) as n,
        1 - list_aggregate(all_after, 'median') / nullif(list_aggregate(all_before, 'median'), 0) as drop_ratio,
        {{ low_drop_of_medians('all_before', 'all_after') }} as low_drop_ratio,
        {{ high_drop_of_medians('all_before', 'all_after') }} as high_drop_ratio
    from changes
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
    drops.n,
    drops.drop_ratio,
    drops.low_drop_ratio,
    drops.high_drop_ratio,
    of_default.drop_ratio as default_drop_ratio,
    case
        when of_default.drop_ratio > {{ var('lab_unmasked_ratio') }} then abs(drops.drop_ratio) < {{ var('lab_masked_ratio') }}
    end as is_masked,
    case
        when of_default.drop_ratio is null or of_default.drop_ratio <= {{ var('lab_unmasked_ratio') }} then null
        when drops.low_drop_ratio > -{{ var('lab_masked_ratio') }} and drops.high_drop_ratio < {{ var('lab_masked_ratio') }} then 'masked'
        when drops.low_drop_ratio > {{ var('lab_masked_ratio') }} or drops.high_drop_ratio < -{{ var('lab_masked_ratio') }} then 'not masked'
        else 'inconclusive'
    end as verdict
from drops
left join defaults on drops.experiment_id = defaults.experiment_id
left join drops as of_default
    on drops.experiment_id = of_default.experiment_id
    and drops.slowdown = of_default.slowdown
    and defaults.config_id = of_default.config_id
where drops.drop_ratio is not null
