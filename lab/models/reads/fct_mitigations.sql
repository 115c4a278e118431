{%- set lab_least_whole_reads = 30 %}{#- of files of one extent, with which others are compared -#}
{%- set lab_least_reads = 20 %}{#- of fewer, nothing is said of temporal slowdowns -#}
{%- set lab_masked_ratio = 0.02 %}{#- a configuration masks a slowdown where its drop is smaller -#}
{%- set lab_unmasked_ratio = 0.05 %}{#- and that of the default configuration is larger than this -#}
-- How much each slowdown costs in a configuration, and whether it masks what the default one shows. Grain: experiment_id, slowdown, config_id.
with intrinsic as (
    select
        experiment_id, config_id,
        files as n,
        drop_ratio, low_drop_ratio, high_drop_ratio,
        case
            when count(*) over (partition by experiment_id, config_id) = 1 then 'all files have the same number of extents'
            when min(extent_count) over (partition by experiment_id, config_id) > 1 then 'no file has one extent'
            when sum(case when extent_count = 1 then reads end) over (partition by experiment_id, config_id) < {{ lab_least_whole_reads }}
                then 'fewer than {{ lab_least_whole_reads }} reads of files of one extent'
        end as reason
    from {{ ref('fct_fragmentation_effect') }}
    qualify extent_count = max(extent_count) over (partition by experiment_id, config_id)
),

spans as (
    select experiment_id, config_id, sum(span_s) as span_s, max(reads) as reads, min(least_drop_ratio) as least_drop_ratio
    from (
        select experiment_id, config_id, count(*) as reads, max(ended_s) - min(started_s) as span_s, min(least_drop_ratio) as least_drop_ratio
        from {{ ref('step_lab__timed_reads') }}
        group by experiment_id, config_id, phase
    ) as phases
    group by experiment_id, config_id
),

-- each mean with its interval, by Student's t
temporal as (
    select
        spans.experiment_id, spans.config_id, spans.span_s,
        case
            when spans.reads < {{ lab_least_reads }} then 'fewer than {{ lab_least_reads }} reads'
            when spans.least_drop_ratio >= 1 then 'single reads vary too much to show any drop'
        end as reason,
        count(instances.mean_drop_ratio) as n,
        coalesce({{ of_sample('avg', 'instances.mean_drop_ratio', 'instances.mean_drop_ratio is not null') }}, 0) as drop_ratio,
        {{ of_sample('stddev_samp', 'instances.mean_drop_ratio', 'instances.mean_drop_ratio is not null') }} as sd_drop_ratio,
        student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(n - 1, 0) as double)) * sd_drop_ratio / sqrt(n) as half_width
    from spans
    left join {{ ref('fct_temporal_slowdowns') }} as instances using (experiment_id, config_id)
    group by spans.experiment_id, spans.config_id, spans.span_s, spans.reads, spans.least_drop_ratio
),

-- before and after: the phases, else the onset of files that have one
sided_reads as (
    select
        reads.experiment_id, reads.config_id, reads.run_number,
        floor((reads.started_s + reads.ended_s) / 7200) as hour,
        reads.throughput_bytes_per_s,
        case when reads.phase in ('before', 'after') then reads.phase = 'after' end as is_after_phase,
        floor((reads.started_s + reads.ended_s) / 7200) >= onsets.onset_hour as is_after_onset
    from {{ ref('fct_file_reads') }} as reads
    left join {{ ref('fct_permanent_slowdowns') }} as onsets using (experiment_id, config_id, file_name)
    where reads.throughput_bytes_per_s is not null
),

halves as (
    select
        *,
        case
            when count(distinct is_after_phase) over (partition by experiment_id, config_id) = 2 then is_after_phase else is_after_onset
        end as is_after
    from sided_reads
),

-- reads of one hour of a run are alike: an interval is one of hours
hours as (
    select experiment_id, config_id, is_after, median(throughput_bytes_per_s) as median_throughput
    from halves
    where is_after is not null
    group by experiment_id, config_id, is_after, run_number, hour
),

sides as (
    select
        experiment_id, config_id,
        list_sort(list(median_throughput) filter (where not is_after)) as hours_before,
        list_sort(list(median_throughput) filter (where is_after)) as hours_after
    from hours
    group by experiment_id, config_id
),

permanent as (
    select
        experiment_id, config_id,
        1 - median(throughput_bytes_per_s) filter (where is_after)
        / nullif(median(throughput_bytes_per_s) filter (where not is_after), 0) as drop_ratio
    from halves
    group by experiment_id, config_id
),

drops as (
    select
        'intrinsic' as slowdown,
        experiment_id, config_id, n, drop_ratio, low_drop_ratio, high_drop_ratio,
        null as span_s,
        reason
    from intrinsic
    union all
    select
        'temporal' as slowdown,
        experiment_id, config_id, n, drop_ratio,
        drop_ratio - half_width as low_drop_ratio,
        drop_ratio + half_width as high_drop_ratio,
        span_s,
        case when n = 0 then reason end as reason
    from temporal
    union all
    select
        'permanent' as slowdown,
        permanent.experiment_id, permanent.config_id,
        least(len(sides.hours_before), len(sides.hours_after)) as n,
        permanent.drop_ratio,
        {{ low_drop_of_medians('sides.hours_before', 'sides.hours_after') }} as low_drop_ratio,
        {{ high_drop_of_medians('sides.hours_before', 'sides.hours_after') }} as high_drop_ratio,
        null as span_s,
        null as reason
    from permanent
    inner join sides on permanent.experiment_id = sides.experiment_id and permanent.config_id = sides.config_id
),

defaults as (
    select experiment_id, min(config_id) as config_id
    from {{ ref('dim_configs') }}
    where is_default
    group by experiment_id
)

select
    drops.experiment_id, drops.slowdown, drops.config_id, drops.n, drops.drop_ratio, drops.low_drop_ratio, drops.high_drop_ratio,
    of_default.drop_ratio as default_drop_ratio,
    case
        when drops.reason is null and of_default.drop_ratio > {{ lab_unmasked_ratio }} then abs(drops.drop_ratio) < {{ lab_masked_ratio }}
    end as is_masked,
    case
        when drops.reason is not null then 'not tested'
        when of_default.drop_ratio is null or of_default.drop_ratio <= {{ lab_unmasked_ratio }} then null
        -- none came, and where they come as often as by default that is improbable
        when drops.slowdown = 'temporal' and drops.n = 0 and exp(-of_default.n * drops.span_s / of_default.span_s) <= {{ var('lab_level') }} then 'masked'
        when drops.low_drop_ratio > -{{ lab_masked_ratio }} and drops.high_drop_ratio < {{ lab_masked_ratio }} then 'masked'
        when drops.low_drop_ratio > {{ lab_masked_ratio }} or drops.high_drop_ratio < -{{ lab_masked_ratio }} then 'not masked'
        else 'inconclusive'
    end as verdict,
    drops.reason
from drops
left join defaults on drops.experiment_id = defaults.experiment_id
left join drops as of_default
    on drops.experiment_id = of_default.experiment_id
    and drops.slowdown = of_default.slowdown
    and defaults.config_id = of_default.config_id
where drops.drop_ratio is not null
