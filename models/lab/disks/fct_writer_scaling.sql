-- What more concurrent writers do to bandwidth, run length, seeks and fragmentation. Grain: experiment_id, writers.
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
        {{ of_sample('avg', 'patterns.bandwidth_bytes_per_s') }} as bandwidth_bytes_per_s,
        {{ of_sample('avg', 'patterns.mean_run_bytes') }} as mean_run_bytes,
        {{ of_sample('avg', 'patterns.seeks_per_mib') }} as seeks_per_mib
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
        avg(files.extent_count) as extents_per_file,
        sum(files.allocated_bytes) / nullif(cast(sum(files.extent_count) as double), 0) as mean_extent_bytes
    from configs
    inner join {{ ref('fct_file_fragments') }} as files
        on configs.experiment_id = files.experiment_id and configs.config_id = files.config_id
    group by configs.experiment_id, configs.writers
),

scaled as (
    select
        counts.experiment_id,
        counts.writers,
        coalesce(traced.traces, 0) as traces,
        coalesce(mapped.files, 0) as files,
        traced.bandwidth_bytes_per_s,
        traced.mean_run_bytes,
        traced.seeks_per_mib,
        mapped.extents_per_file,
        mapped.mean_extent_bytes
    from (select distinct experiment_id, writers from configs) as counts
    left join traced on counts.experiment_id = traced.experiment_id and counts.writers = traced.writers
    left join mapped on counts.experiment_id = mapped.experiment_id and counts.writers = mapped.writers
)

select
    scaled.experiment_id,
    scaled.writers,
    scaled.traces,
    scaled.files,
    scaled.bandwidth_bytes_per_s,
    scaled.mean_run_bytes,
    scaled.seeks_per_mib,
    scaled.extents_per_file,
    scaled.mean_extent_bytes,
    scaled.bandwidth_bytes_per_s / nullif(single.bandwidth_bytes_per_s, 0) as bandwidth_ratio,
    scaled.mean_run_bytes / nullif(single.mean_run_bytes, 0) as mean_run_ratio,
    scaled.seeks_per_mib / nullif(single.seeks_per_mib, 0) as seeks_per_mib_ratio,
    scaled.extents_per_file / nullif(single.extents_per_file, 0) as extents_per_file_ratio
from scaled
left join scaled as single on scaled.experiment_id = single.experiment_id and single.writers = 1
