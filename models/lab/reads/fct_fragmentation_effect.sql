-- How fast files are read by how many extents they have. Grain: experiment_id, config_id, extent_count.
with files as (
    select
        experiment_id,
        config_id,
        extent_count,
        file_name,
        {{ of_sample('avg', 'throughput_bytes_per_s') }} as throughput_bytes_per_s
    from {{ ref('fct_file_reads') }}
    where extent_count is not null and throughput_bytes_per_s is not null
    group by experiment_id, config_id, extent_count, file_name
),

counts as (
    select
        experiment_id,
        config_id,
        extent_count,
        count(*) as files,
        {{ of_sample('avg', 'throughput_bytes_per_s') }} as mean_throughput_bytes_per_s
    from files
    group by experiment_id, config_id, extent_count
),

bases as (
    select
        *,
        -- files in two extents, where there are any; else those in the fewest
        first_value(mean_throughput_bytes_per_s) over (
            partition by experiment_id, config_id order by extent_count <> {{ var('lab_whole_file_extents') }} asc, extent_count asc
        ) as base_bytes_per_s
    from counts
)

select
    experiment_id,
    config_id,
    extent_count,
    files,
    mean_throughput_bytes_per_s,
    (base_bytes_per_s - mean_throughput_bytes_per_s) / base_bytes_per_s as drop_ratio
from bases
