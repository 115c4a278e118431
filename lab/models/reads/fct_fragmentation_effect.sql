-- How fast files are read by how many extents they have. Grain: experiment_id, config_id, extent_count.
with files as (
    select
        experiment_id, config_id, extent_count, file_name,
        count(*) as reads,
        {{ of_sample('avg', 'throughput_bytes_per_s') }} as throughput_bytes_per_s
    from {{ ref('fct_file_reads') }}
    where extent_count is not null and throughput_bytes_per_s is not null
    group by experiment_id, config_id, extent_count, file_name
),

counts as (
    select
        experiment_id, config_id, extent_count,
        count(*) as files,
        cast(sum(reads) as bigint) as reads,
        {{ of_sample('avg', 'throughput_bytes_per_s') }} as mean_throughput_bytes_per_s,
        {{ of_sample('stddev_samp', 'throughput_bytes_per_s') }} as sd_throughput_bytes_per_s
    from files
    group by experiment_id, config_id, extent_count
),

bases as (
    select
        *,
        first_value(extent_count) over base as base_extent_count,
        first_value(files) over base as base_files,
        first_value(mean_throughput_bytes_per_s) over base as base_bytes_per_s,
        first_value(sd_throughput_bytes_per_s) over base as base_sd_bytes_per_s
    from counts
    -- files of the fewest extents: of one, where there are any
    window base as (partition by experiment_id, config_id order by extent_count asc)
),

dropped_rates as (
    select
        *,
        (base_bytes_per_s - mean_throughput_bytes_per_s) / nullif(base_bytes_per_s, 0) as drop_ratio,
        extent_count = base_extent_count as is_base,
        {{ ratio_half_width(
            'mean_throughput_bytes_per_s', 'sd_throughput_bytes_per_s', 'files', 'base_bytes_per_s', 'base_sd_bytes_per_s', 'base_files'
        ) }} as half_width
    from bases
)

select
    * exclude (base_extent_count, base_files, base_bytes_per_s, base_sd_bytes_per_s, is_base, half_width),
    case when not is_base then drop_ratio - half_width end as low_drop_ratio,
    case when not is_base then drop_ratio + half_width end as high_drop_ratio,
    case when not is_base then {{ interval_verdict('drop_ratio - half_width', 'drop_ratio + half_width', 0, 'slower', 'faster') }} end as verdict
from dropped_rates
