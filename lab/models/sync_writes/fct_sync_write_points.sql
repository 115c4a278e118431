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

-- the best of a configuration beside each of its buffers; of equals the smallest
compared as (
    select
        *,
        power(sd, 2) / n as error,
        first_value(mean) over by_mean as best_mean,
        first_value(n) over by_mean as best_n,
        power(first_value(sd) over by_mean, 2) / first_value(n) over by_mean as best_error
    from passes
    window by_mean as (
        partition by experiment_id, config_id, "pass" order by case when "pass" = 'latency' then mean else -mean end asc, buffer_bytes asc
    )
),

judged as (
    select
        *,
        sd / nullif(mean, 0) * detectable_effect(
            cast(n as double), cast({{ var('lab_level') }} as double), cast({{ var('lab_power') }} as double)
        ) as detectable_ratio,
        student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(n - 1 as double)) * sd / sqrt(n) as half_width,
        -- a buffer is among the best unless Welch's test tells it from the best one; with one run of either it cannot
        case
            when best_error + error > 0
                then student_two_sided_p(
                    (mean - best_mean) / sqrt(best_error + error), {{ satterthwaite('best_error', 'best_n', 'error', 'n') }}
                ) >= {{ var('lab_level') }}
            else mean = best_mean or best_error + error is null
        end as is_best
    from compared
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
        any_value(mean + half_width) {{ of_pass }} as high_{{ name }},
        any_value(is_best) {{ of_pass }} as is_best_{{ pass }}{{ ',' if not loop.last }}
        {%- endfor %}
    from judged
    group by experiment_id, config_id, buffer_bytes
),

rated as (
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

preferred as (
    select * from tails
    qualify is_sync or not bool_or(is_sync) over (partition by experiment_id, config_id, buffer_bytes)
),

tailed as (
    select
        experiment_id, config_id, buffer_bytes,
        count(*) as n_p99,
        {{ of_sample('avg', 'value') }} as p99_latency_us,
        {{ of_sample('avg', 'p999') }} as p999_latency_us
    from preferred
    group by experiment_id, config_id, buffer_bytes
),

best as (
    select
        *,
        first_value(ratio) over by_ratio as best_ratio,
        first_value(ratio_relative_se) over by_ratio as best_ratio_error,
        first_value(least(n_throughput, n_latency)) over by_ratio as best_ratio_n
    from rated
    window by_ratio as (partition by experiment_id, config_id order by ratio desc nulls last, buffer_bytes asc)
)

select
    points.* exclude (best_ratio, best_ratio_error, best_ratio_n),
    tailed.n_p99, tailed.p99_latency_us, tailed.p999_latency_us,
    -- a ratio varies as both its means do
    case
        when points.ratio is not null
            then coalesce(
                abs(ln(points.best_ratio / points.ratio)) < student_quantile(
                    cast(1 - {{ var('lab_level') }} / 2 as double),
                    cast(nullif(least(points.n_throughput, points.n_latency, points.best_ratio_n) - 1, 0) as double)
                ) * sqrt(power(points.ratio_relative_se, 2) + power(points.best_ratio_error, 2)) or points.ratio = points.best_ratio,
                true
            )
    end as is_best_ratio,
    -- a spread that is not known counts 0
    points.mean_throughput_kb_per_s - coalesce(points.sd_throughput_kb_per_s, 0) as conservative_throughput_kb_per_s,
    points.mean_latency_us + coalesce(points.sd_latency_us, 0) as conservative_latency_us,
    (points.mean_throughput_kb_per_s - coalesce(points.sd_throughput_kb_per_s, 0))
    / nullif(points.mean_latency_us + coalesce(points.sd_latency_us, 0), 0) as conservative_ratio,
    least(points.n_throughput, points.n_latency) >= experiments.expected_runs as is_complete
from best as points
inner join {{ ref('dim_experiments') }} as experiments using (experiment_id)
left join tailed using (experiment_id, config_id, buffer_bytes)
