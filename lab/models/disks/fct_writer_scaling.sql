-- What more concurrent writers do to bandwidth, run length, seeks, fragmentation and the speed of writes. Grain: experiment_id, writers.
{%- set of_traces = ('bandwidth_bytes_per_s', 'mean_run_bytes', 'seeks_per_mib') %}
{%- set ratios = {
    'bandwidth': 'bandwidth_bytes_per_s', 'mean_run': 'mean_run_bytes', 'seeks_per_mib': 'seeks_per_mib',
    'extents_per_file': 'extents_per_file', 'extents_per_mib': 'extents_per_mib', 'write': 'write_bytes_per_s'
} %}
with configs as (
    select
        configs.experiment_id,
        configs.config_id,
        configs.writers,
        devices.major_minor
    from {{ ref('dim_configs') }} as configs
    left join {{ ref('dim_devices') }} as devices
        on configs.experiment_id = devices.experiment_id and configs.device_id = devices.device_id
    where configs.writers is not null
),

traced as (
    select
        configs.experiment_id,
        configs.writers,
        count(*) as traces,
        {%- for measure in of_traces %}
        -- a trace without duration has no bandwidth
        count(patterns.{{ measure }}) as n_{{ measure }},
        {{ of_sample('avg', 'patterns.' ~ measure) }} as {{ measure }},
        {{ of_sample('stddev_samp', 'patterns.' ~ measure) }} as sd_{{ measure }}{{ ',' if not loop.last }}
        {%- endfor %}
    from configs
    inner join {{ ref('fct_access_patterns') }} as patterns
        on configs.experiment_id = patterns.experiment_id
        and configs.config_id = patterns.config_id
        -- without the number of the config's device every device of a trace counts
        and coalesce(configs.major_minor = patterns.device, true)
    group by configs.experiment_id, configs.writers
),

mapped as (
    select
        configs.experiment_id,
        configs.writers,
        count(*) as files,
        count(files.extent_count) as n_extents_per_file,
        avg(files.extent_count) as extents_per_file,
        {{ of_sample('stddev_samp', 'files.extent_count') }} as sd_extents_per_file,
        sum(files.allocated_bytes) / nullif(cast(sum(files.extent_count) as double), 0) as mean_extent_bytes
    from configs
    inner join {{ ref('fct_file_fragments') }} as files
        on configs.experiment_id = files.experiment_id and configs.config_id = files.config_id
    group by configs.experiment_id, configs.writers
),

-- files of one writer may be larger than those of several: extents are counted by bytes
run_maps as (
    select
        configs.experiment_id,
        configs.writers,
        sum(files.extent_count) * 1048576.0 / nullif(sum(files.allocated_bytes), 0) as extents_per_mib
    from configs
    inner join {{ ref('fct_file_fragments') }} as files
        on configs.experiment_id = files.experiment_id and configs.config_id = files.config_id
    group by configs.experiment_id, configs.writers, configs.config_id, files.phase, files.run_number
),

spread_maps as (
    select
        experiment_id,
        writers,
        count(extents_per_mib) as n_extents_per_mib,
        {{ of_sample('avg', 'extents_per_mib', 'extents_per_mib is not null') }} as extents_per_mib,
        {{ of_sample('stddev_samp', 'extents_per_mib', 'extents_per_mib is not null') }} as sd_extents_per_mib
    from run_maps
    group by experiment_id, writers
),

-- what `drivetail lab run writers` timed: all writers of a run together
timed as (
    select
        configs.experiment_id,
        configs.writers,
        count(*) as n_write_bytes_per_s,
        {{ of_sample('avg', 'results.value') }} as write_bytes_per_s,
        {{ of_sample('stddev_samp', 'results.value') }} as sd_write_bytes_per_s
    from configs
    inner join {{ ref('fct_bench_results') }} as results
        on configs.experiment_id = results.experiment_id and configs.config_id = results.config_id
    where results.benchmark = 'writers' and results.test = 'write' and results.unit = 'B/s'
    group by configs.experiment_id, configs.writers
),

scaled as (
    select
        counts.experiment_id,
        counts.writers,
        coalesce(traced.traces, 0) as traces,
        coalesce(mapped.files, 0) as files,
        {%- for measure in of_traces %}
        traced.n_{{ measure }},
        traced.{{ measure }},
        traced.sd_{{ measure }},
        {%- endfor %}
        mapped.n_extents_per_file,
        mapped.extents_per_file,
        mapped.sd_extents_per_file,
        mapped.mean_extent_bytes,
        spread_maps.n_extents_per_mib,
        spread_maps.extents_per_mib,
        spread_maps.sd_extents_per_mib,
        timed.n_write_bytes_per_s,
        timed.write_bytes_per_s,
        timed.sd_write_bytes_per_s
    from (select distinct experiment_id, writers from configs) as counts
    left join traced on counts.experiment_id = traced.experiment_id and counts.writers = traced.writers
    left join mapped on counts.experiment_id = mapped.experiment_id and counts.writers = mapped.writers
    left join spread_maps on counts.experiment_id = spread_maps.experiment_id and counts.writers = spread_maps.writers
    left join timed on counts.experiment_id = timed.experiment_id and counts.writers = timed.writers
),

compared as (
    select
        scaled.*,
        scaled.mean_extent_bytes / nullif(single.mean_extent_bytes, 0) as mean_extent_ratio,
        {%- for ratio, measure in ratios.items() %}
        scaled.{{ measure }} / nullif(single.{{ measure }}, 0) as {{ ratio }}_ratio,
        case
            when scaled.writers <> 1
                then {{ ratio_half_width(
                    'scaled.' ~ measure, 'scaled.sd_' ~ measure, 'scaled.n_' ~ measure,
                    'single.' ~ measure, 'single.sd_' ~ measure, 'single.n_' ~ measure
                ) }}
        end as {{ ratio }}_half_width{{ ',' if not loop.last }}
        {%- endfor %}
    from scaled
    left join scaled as single on scaled.experiment_id = single.experiment_id and single.writers = 1
)

select
    experiment_id,
    writers,
    traces,
    files,
    {%- for measure in ratios.values() %}
    {{ measure }},
    sd_{{ measure }},
    {%- endfor %}
    mean_extent_bytes,
    mean_extent_ratio,
    {%- for ratio in ratios %}
    {{ ratio }}_ratio,
    {{ ratio }}_ratio - {{ ratio }}_half_width as low_{{ ratio }}_ratio,
    {{ ratio }}_ratio + {{ ratio }}_half_width as high_{{ ratio }}_ratio,
    case
        when writers <> 1 and {{ ratio }}_ratio is not null
            then {{ interval_verdict(ratio ~ '_ratio - ' ~ ratio ~ '_half_width', ratio ~ '_ratio + ' ~ ratio ~ '_half_width', 1, 'higher', 'lower') }}
    end as {{ ratio }}_verdict{{ ',' if not loop.last }}
    {%- endfor %}
from compared
