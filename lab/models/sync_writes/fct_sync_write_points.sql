-- Throughput and latency of synchronous writes by buffer size. Grain: experiment_id, config_id, buffer_bytes.
with points as (
    select
        experiment_id,
        config_id,
        buffer_bytes,
        {%- for pass, name in (('throughput', 'throughput_kb_per_s'), ('latency', 'latency_us')) %}
        count(*) filter (where "pass" = '{{ pass }}') as n_{{ pass }},
        {{ of_sample('avg', 'value', '"pass" = \'' ~ pass ~ '\'') }} as mean_{{ name }},
        {{ of_sample('stddev_samp', 'value', '"pass" = \'' ~ pass ~ '\'') }} as sd_{{ name }},
        min(value) filter (where "pass" = '{{ pass }}') as min_{{ name }},
        max(value) filter (where "pass" = '{{ pass }}') as max_{{ name }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ ref('step_lab__sync_writes') }}
    group by experiment_id, config_id, buffer_bytes
)

select
    points.*,
    points.mean_throughput_kb_per_s / nullif(points.mean_latency_us, 0) as ratio,
    sqrt(
        power(points.sd_throughput_kb_per_s / nullif(points.mean_throughput_kb_per_s, 0), 2) / points.n_throughput
        + power(points.sd_latency_us / nullif(points.mean_latency_us, 0), 2) / points.n_latency
    ) as ratio_relative_se,
    -- a spread that is not known counts 0
    points.mean_throughput_kb_per_s - coalesce(points.sd_throughput_kb_per_s, 0) as conservative_throughput_kb_per_s,
    points.mean_latency_us + coalesce(points.sd_latency_us, 0) as conservative_latency_us,
    (points.mean_throughput_kb_per_s - coalesce(points.sd_throughput_kb_per_s, 0))
    / nullif(points.mean_latency_us + coalesce(points.sd_latency_us, 0), 0) as conservative_ratio,
    {%- for pass, name in (('throughput', 'throughput_kb_per_s'), ('latency', 'latency_us')) %}
    case
        when points.n_{{ pass }} >= 2
            then points.sd_{{ name }} / nullif(points.mean_{{ name }}, 0) * detectable_effect(
                cast(points.n_{{ pass }} as double), cast({{ var('lab_level') }} as double), cast({{ var('lab_power') }} as double)
            )
    end as detectable_{{ pass }}_ratio,
    {%- endfor %}
    {%- for pass, name in (('throughput', 'throughput_kb_per_s'), ('latency', 'latency_us')) %}
    {%- for side, sign in (('low', '-'), ('high', '+')) %}
    points.mean_{{ name }} {{ sign }} case
        when points.n_{{ pass }} >= 2
            then student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(points.n_{{ pass }} - 1 as double))
                * points.sd_{{ name }} / sqrt(points.n_{{ pass }})
    end as {{ side }}_{{ name }},
    {%- endfor %}
    {%- endfor %}
    least(points.n_throughput, points.n_latency) >= experiments.expected_runs as is_complete
from points
inner join {{ ref('dim_experiments') }} as experiments on points.experiment_id = experiments.experiment_id
