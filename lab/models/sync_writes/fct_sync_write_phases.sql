{%- set lab_flat_slope = 0.25 %}{#- a slope below it is flat: log2 of a throughput or latency over log2 of the buffer size -#}
{%- set lab_plateau_slope = 0.1 %}{#- throughput and latency grow alike where their slopes are no further apart -#}
-- How throughput and latency change from one buffer size to the next. Grain: experiment_id, config_id, buffer_bytes.
with pairs as (
    select
        experiment_id, config_id, buffer_bytes,
        lead(buffer_bytes) over (partition by experiment_id, config_id order by buffer_bytes) as next_bytes,
        mean_throughput_kb_per_s as throughput,
        lead(mean_throughput_kb_per_s) over (partition by experiment_id, config_id order by buffer_bytes) as next_throughput,
        mean_latency_us as latency,
        lead(mean_latency_us) over (partition by experiment_id, config_id order by buffer_bytes) as next_latency
    from {{ ref('fct_sync_write_points') }}
    where mean_throughput_kb_per_s > 0 and mean_latency_us > 0
),

judged_pairs as (
    select
        experiment_id, config_id, buffer_bytes, next_bytes,
        row_number() over (partition by experiment_id, config_id order by buffer_bytes) as pair,
        count(*) over (partition by experiment_id, config_id) as pairs,
        log2(next_throughput / throughput) / log2(next_bytes / cast(buffer_bytes as double)) as throughput_slope,
        log2(next_latency / latency) / log2(next_bytes / cast(buffer_bytes as double)) as latency_slope,
        case
            when throughput_slope < {{ lab_flat_slope }} and latency_slope < {{ lab_flat_slope }}
                then case when latency_slope <= throughput_slope then 1 else 3 end
            when latency_slope < {{ lab_flat_slope }} then 1
            when throughput_slope < {{ lab_flat_slope }} then 3
            else 2
        end as raw_phase
    from pairs
    where next_bytes is not null
),

-- the first i pairs are of phase 1, those up to j of phase 2, the others of phase 3
chosen_pairs as (
    select
        pairs.experiment_id, pairs.config_id,
        i.i,
        j.j,
        count(*) filter (where pairs.raw_phase <> case when pairs.pair <= i.i then 1 when pairs.pair <= j.j then 2 else 3 end) as differing
    from judged_pairs as pairs
    inner join (select unnest(range(0, 1001)) as i) as i on i.i <= pairs.pairs
    inner join (select unnest(range(0, 1001)) as j) as j on i.i <= j.j and j.j <= pairs.pairs
    group by pairs.experiment_id, pairs.config_id, i.i, j.j
    qualify row_number() over (partition by pairs.experiment_id, pairs.config_id order by differing asc, i.i asc, j.j asc) = 1
)

select
    judged_pairs.* exclude (pair, pairs),
    case when judged_pairs.pair <= chosen_pairs.i then 1 when judged_pairs.pair <= chosen_pairs.j then 2 else 3 end as phase,
    case
        when abs(judged_pairs.throughput_slope - judged_pairs.latency_slope) <= {{ lab_plateau_slope }} then 'plateau'
        when judged_pairs.throughput_slope > judged_pairs.latency_slope then 'ascending'
        else 'descending'
    end as ratio_trend
from judged_pairs
inner join chosen_pairs on judged_pairs.experiment_id = chosen_pairs.experiment_id and judged_pairs.config_id = chosen_pairs.config_id
