-- Fragmentation and speed of writers with and without preallocation (factor `fallocate`). Grain: experiment_id, config_id, config_id_without.
with configs as (
    select
        configs.experiment_id, configs.config_id,
        coalesce(configs.writers, try_cast(writers.value as bigint)) as writers,
        preallocated.value = 'true' as is_preallocated
    from {{ ref('dim_configs') }} as configs
    inner join {{ ref('dim_config_factors') }} as preallocated
        on configs.experiment_id = preallocated.experiment_id
        and configs.config_id = preallocated.config_id
        and preallocated.factor = 'fallocate'
        and preallocated.value in ('true', 'false')
    left join {{ ref('dim_config_factors') }} as writers
        on configs.experiment_id = writers.experiment_id
        and configs.config_id = writers.config_id
        and writers.factor = 'writers'
),

files as (
    select
        experiment_id, config_id,
        count(*) as files,
        count(*) filter (where extent_count = 1) as whole_files,
        avg(extent_count) as extents_per_file
    from {{ ref('fct_file_fragments') }}
    group by experiment_id, config_id
),

speeds as (
    select experiment_id, config_id, {{ of_sample('avg', 'value') }} as write_bytes_per_s
    from {{ ref('fct_bench_results') }}
    where benchmark = 'writers' and test = 'write' and unit = 'B/s'
    group by experiment_id, config_id
),

measured_configs as (
    select configs.*, files.files, files.whole_files, files.extents_per_file, speeds.write_bytes_per_s
    from configs
    inner join files using (experiment_id, config_id)
    left join speeds using (experiment_id, config_id)
)

select
    preallocated.experiment_id, preallocated.config_id,
    usual.config_id as config_id_without,
    preallocated.writers,
    {%- for side, relation in (('without', 'usual'), ('with', 'preallocated')) %}
    {{ relation }}.files as files_{{ side }},
    {{ relation }}.whole_files as whole_files_{{ side }},
    {{ relation }}.extents_per_file as extents_per_file_{{ side }},
    {{ relation }}.write_bytes_per_s as write_bytes_per_s_{{ side }}{{ ',' if not loop.last }}
    {%- endfor %}
from measured_configs as preallocated
inner join measured_configs as usual
    on preallocated.experiment_id = usual.experiment_id
    and preallocated.writers = usual.writers
    and preallocated.is_preallocated
    and not usual.is_preallocated
