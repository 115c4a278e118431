-- Fragmentation and speed of writers with and without preallocation (factor `fallocate`). Grain: experiment_id, writers.
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
        configs.experiment_id, configs.writers,
        {%- for side, condition in (('without', 'not configs.is_preallocated'), ('with', 'configs.is_preallocated')) %}
        count(*) filter (where {{ condition }}) as files_{{ side }},
        count(*) filter (where {{ condition }} and fragments.extent_count = 1) as whole_files_{{ side }},
        avg(fragments.extent_count) filter (where {{ condition }}) as extents_per_file_{{ side }}{{ ',' if not loop.last }}
        {%- endfor %}
    from configs
    inner join {{ ref('fct_file_fragments') }} as fragments using (experiment_id, config_id)
    where configs.writers is not null
    group by configs.experiment_id, configs.writers
),

speeds as (
    select
        configs.experiment_id, configs.writers,
        {{ of_sample('avg', 'results.value', 'not configs.is_preallocated') }} as write_bytes_per_s_without,
        {{ of_sample('avg', 'results.value', 'configs.is_preallocated') }} as write_bytes_per_s_with
    from configs
    inner join {{ ref('fct_bench_results') }} as results using (experiment_id, config_id)
    where results.benchmark = 'writers' and results.test = 'write' and results.unit = 'B/s'
    group by configs.experiment_id, configs.writers
)

select
    files.experiment_id, files.writers,
    {%- for side in ('without', 'with') %}
    files.files_{{ side }},
    files.whole_files_{{ side }},
    files.extents_per_file_{{ side }},
    speeds.write_bytes_per_s_{{ side }}{{ ',' if not loop.last }}
    {%- endfor %}
from files
left join speeds on files.experiment_id = speeds.experiment_id and files.writers = speeds.writers
where files.files_without > 0 and files.files_with > 0
