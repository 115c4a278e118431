-- Bandwidth, run length, seeks, fragmentation and the speed of writes by the number of writers; fct_bench_comparisons says what differs. Grain: experiment_id, writers.
{%- set columns = {
    'bandwidth': 'bandwidth_bytes_per_s', 'mean_run': 'mean_run_bytes', 'seeks_per_mib': 'seeks_per_mib',
    'extents_per_file': 'extents_per_file', 'extents_per_mib': 'extents_per_mib', 'write': 'write_bytes_per_s'
} %}
with configs as (
    select configs.experiment_id, configs.config_id, configs.writers, devices.major_minor
    from {{ ref('dim_configs') }} as configs
    left join {{ ref('dim_devices') }} as devices using (experiment_id, device_id)
    where configs.writers is not null
),

maps as (
    select
        configs.experiment_id, configs.config_id, configs.writers,
        files.phase, files.run_number, files.extent_count, files.allocated_bytes
    from configs
    inner join {{ ref('fct_file_fragments') }} as files using (experiment_id, config_id)
),

samples as (
    {%- for measure in ('bandwidth', 'mean_run', 'seeks_per_mib') %}
    select
        configs.experiment_id, configs.writers,
        '{{ measure }}' as measure,
        -- a trace without duration has no bandwidth
        patterns.{{ columns[measure] }} as value
    from configs
    inner join {{ ref('fct_access_patterns') }} as patterns
        on configs.experiment_id = patterns.experiment_id
        and configs.config_id = patterns.config_id
        -- without the number of the config's device every device of a trace counts
        and coalesce(configs.major_minor = patterns.device, true)
    union all
    {%- endfor %}
    select experiment_id, writers, 'extents_per_file' as measure, extent_count as value
    from maps
    union all
    -- files of one writer may be larger than those of several: extents are counted by bytes
    select
        experiment_id, writers,
        'extents_per_mib' as measure,
        sum(extent_count) * 1048576.0 / nullif(sum(allocated_bytes), 0) as value
    from maps
    group by experiment_id, writers, config_id, phase, run_number
    union all
    -- what `drivetail lab run writers` timed: all writers of a run together
    select configs.experiment_id, configs.writers, 'write' as measure, results.value
    from configs
    inner join {{ ref('fct_bench_results') }} as results using (experiment_id, config_id)
    where results.benchmark = 'writers' and results.test = 'write' and results.unit = 'B/s'
),

spreads as (
    select
        experiment_id, writers, measure,
        count(*) as samples,
        {{ of_sample('avg', 'value') }} as mean,
        {{ of_sample('stddev_samp', 'value') }} as sd
    from samples
    group by experiment_id, writers, measure
),

compared_spreads as (
    select spreads.*, spreads.mean / nullif(single.mean, 0) as ratio
    from spreads
    left join spreads as single on spreads.experiment_id = single.experiment_id and spreads.measure = single.measure and single.writers = 1
),

extents as (
    select
        experiment_id, writers,
        sum(allocated_bytes) / nullif(cast(sum(extent_count) as double), 0) as mean_extent_bytes
    from maps
    group by experiment_id, writers
)

select
    counts.experiment_id, counts.writers,
    coalesce(any_value(compared_spreads.samples) filter (where compared_spreads.measure = 'mean_run'), 0) as traces,
    coalesce(any_value(compared_spreads.samples) filter (where compared_spreads.measure = 'extents_per_file'), 0) as files,
    {%- for measure, column in columns.items() %}
    {%- set of_measure = "filter (where compared_spreads.measure = '" ~ measure ~ "')" %}
    any_value(compared_spreads.mean) {{ of_measure }} as {{ column }},
    any_value(compared_spreads.sd) {{ of_measure }} as sd_{{ column }},
    any_value(compared_spreads.ratio) {{ of_measure }} as {{ measure }}_ratio,
    {%- endfor %}
    any_value(extents.mean_extent_bytes) as mean_extent_bytes,
    any_value(extents.mean_extent_bytes / nullif(single.mean_extent_bytes, 0)) as mean_extent_ratio
from configs as counts
left join compared_spreads on counts.experiment_id = compared_spreads.experiment_id and counts.writers = compared_spreads.writers
left join extents on counts.experiment_id = extents.experiment_id and counts.writers = extents.writers
left join extents as single on counts.experiment_id = single.experiment_id and single.writers = 1
group by counts.experiment_id, counts.writers
