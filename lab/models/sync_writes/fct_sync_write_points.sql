-- Throughput and latency of synchronous writes by buffer size. Grain: experiment_id, config_id, buffer_bytes.
with passes as (
    select
        experiment_id, config_id, buffer_bytes,
        "pass",
        count(*) as n,
        {{ of_sample('avg', 'value') }} as mean,
        {{ of_sample('stddev_samp', 'value') }} as sd,
        min(value) as least_value,
        max(value) as greatest_value
    from {{ ref('step_lab__sync_writes') }}
    group by experiment_id, config_id, buffer_bytes, "pass"
),

-- a buffer is among the best unless another is shown to be better
beaten as (
    select
        experiment_id, config_id,
        cast(side_a as bigint) as buffer_bytes,
        {%- for test in ('throughput', 'latency', 'ratio') %}
        coalesce(bool_or(answer = 'slower') filter (where test = '{{ test }}'), false) as is_beaten_{{ test }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ ref('fct_bench_comparisons') }}
    where compared = 'buffer'
    group by experiment_id, config_id, side_a
),

judged_passes as (
    select
        *,
        sd / nullif(mean, 0) * detectable_effect(
            cast(n as double), cast({{ var('lab_level') }} as double), cast({{ var('lab_power') }} as double)
        ) as detectable_ratio,
        student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(n - 1 as double)) * sd / sqrt(n) as half_width
    from passes
),

points as (
    select
        experiment_id, config_id, buffer_bytes,
        {%- for pass, name in (('throughput', 'throughput_kb_per_s'), ('latency', 'latency_us')) %}
        {%- set of_pass = "filter (where \"pass\" = '" ~ pass ~ "')" %}
        coalesce(any_value(n) {{ of_pass }}, 0) as n_{{ pass }},
        any_value(mean) {{ of_pass }} as mean_{{ name }},
        any_value(sd) {{ of_pass }} as sd_{{ name }},
        any_value(least_value) {{ of_pass }} as min_{{ name }},
        any_value(greatest_value) {{ of_pass }} as max_{{ name }},
        any_value(detectable_ratio) {{ of_pass }} as detectable_{{ pass }}_ratio,
        any_value(mean - half_width) {{ of_pass }} as low_{{ name }},
        any_value(mean + half_width) {{ of_pass }} as high_{{ name }}{{ ',' if not loop.last }}
        {%- endfor %}
    from judged_passes
    group by experiment_id, config_id, buffer_bytes
),

rated_points as (
    select
        *,
        mean_throughput_kb_per_s / nullif(mean_latency_us, 0) as ratio,
        sqrt(
            power(sd_throughput_kb_per_s / nullif(mean_throughput_kb_per_s, 0), 2) / n_throughput
            + power(sd_latency_us / nullif(mean_latency_us, 0), 2) / n_latency
        ) as ratio_relative_se
    from points
),

-- how long the slowest of a thousand, or of a hundred, writes take, of jobs of fio that are named NAME-BYTES: the sync where the job calls
-- one, else the write
tails as (
    select
        results.experiment_id, results.config_id,
        try_cast(regexp_extract(results.test, '-([0-9]{1,12})\.[a-z.]+_p99$', 1) as bigint) as buffer_bytes,
        results.test like '%.sync.lat_p99' as is_sync,
        results.value, results.p999
    from {{ ref('fct_bench_results') }} as results
    where results.benchmark = 'fio'
        and results."pass" is distinct from 'throughput'
        and regexp_matches(results.test, '-[0-9]{1,12}\.(write\.c?|sync\.)lat_p99$')
),

preferred_tails as (
    select * from tails
    qualify is_sync or not bool_or(is_sync) over (partition by experiment_id, config_id, buffer_bytes)
),

tailed_points as (
    select
        experiment_id, config_id, buffer_bytes,
        count(*) as n_p99,
        {{ of_sample('avg', 'value') }} as p99_latency_us,
        student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(n_p99 - 1, 0) as double))
        * {{ of_sample('stddev_samp', 'value') }} / sqrt(n_p99) as half_width,
        p99_latency_us - half_width as low_p99_latency_us,
        p99_latency_us + half_width as high_p99_latency_us,
        {{ of_sample('avg', 'p999') }} as p999_latency_us
    from preferred_tails
    group by experiment_id, config_id, buffer_bytes
)

select
    points.*,
    tailed_points.* exclude (experiment_id, config_id, buffer_bytes, half_width),
    {%- for test, value in (('throughput', 'mean_throughput_kb_per_s'), ('latency', 'mean_latency_us'), ('ratio', 'ratio')) %}
    case when points.{{ value }} is not null then not coalesce(beaten.is_beaten_{{ test }}, false) end as is_best_{{ test }},
    {%- endfor %}
    -- a spread that is not known counts 0
    points.mean_throughput_kb_per_s - coalesce(points.sd_throughput_kb_per_s, 0) as conservative_throughput_kb_per_s,
    points.mean_latency_us + coalesce(points.sd_latency_us, 0) as conservative_latency_us,
    (points.mean_throughput_kb_per_s - coalesce(points.sd_throughput_kb_per_s, 0))
    / nullif(points.mean_latency_us + coalesce(points.sd_latency_us, 0), 0) as conservative_ratio,
    least(points.n_throughput, points.n_latency) >= experiments.expected_runs as is_complete
from rated_points as points
inner join {{ ref('dim_experiments') }} as experiments using (experiment_id)
left join beaten using (experiment_id, config_id, buffer_bytes)
left join tailed_points using (experiment_id, config_id, buffer_bytes)
