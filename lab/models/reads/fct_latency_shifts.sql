-- Percentiles of latency before and after a file became slow for good, or of the phases. Grain: experiment_id, config_id, file_name, percentile.
with requests as (
    select
        requests.experiment_id, requests.config_id, requests.file_name, requests.latency_us,
        case
            when onsets.onset_hour is not null
                then requests.offset_s + requests.issued_ns / 1e9 >= onsets.onset_hour * 3600
            when requests.phase in ('before', 'after') then requests.phase = 'after'
        end as is_after
    from {{ ref('fct_block_requests') }} as requests
    left join {{ ref('fct_permanent_slowdowns') }} as onsets using (experiment_id, config_id, file_name)
    where requests.read_index is not null
),

sides as (
    select
        experiment_id, config_id, file_name,
        quantile_disc(
            latency_us, [{% for percentile in range(1, 100) %}{{ percentile / 100 }}{{ ', ' if not loop.last }}{% endfor %}]
        ) filter (where not is_after) as before_us,
        quantile_disc(
            latency_us, [{% for percentile in range(1, 100) %}{{ percentile / 100 }}{{ ', ' if not loop.last }}{% endfor %}]
        ) filter (where is_after) as after_us
    from requests
    where is_after is not null
    group by experiment_id, config_id, file_name
    having count(*) filter (where is_after) > 0 and count(*) filter (where not is_after) > 0
)

select
    sides.experiment_id, sides.config_id, sides.file_name,
    percentiles.percentile,
    sides.before_us[percentiles.percentile] as latency_before_us,
    sides.after_us[percentiles.percentile] as latency_after_us,
    sides.after_us[percentiles.percentile] / nullif(sides.before_us[percentiles.percentile], 0) as ratio
from sides
cross join (select unnest(range(1, 100)) as percentile) as percentiles
