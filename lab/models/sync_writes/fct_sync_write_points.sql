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
),

rated as (
    select
        points.*,
        points.mean_throughput_kb_per_s / nullif(points.mean_latency_us, 0) as ratio,
        sqrt(
            power(points.sd_throughput_kb_per_s / nullif(points.mean_throughput_kb_per_s, 0), 2) / points.n_throughput
            + power(points.sd_latency_us / nullif(points.mean_latency_us, 0), 2) / points.n_latency
        ) as ratio_relative_se
    from points
),

-- how long the slowest of a thousand, or of a hundred, writes take, of jobs of fio that are named NAME-BYTES: the sync where the job calls
-- one, else the write
tails as (
    select
        results.experiment_id,
        results.config_id,
        try_cast(regexp_extract(results.test, '-([0-9]{1,12})\.[a-z.]+_p99$', 1) as bigint) as buffer_bytes,
        results.test like '%.sync.lat_p99' as is_sync,
        results.value,
        results.p999
    from {{ ref('fct_bench_results') }} as results
    inner join {{ ref('dim_experiments') }} as experiments on results.experiment_id = experiments.experiment_id
    where experiments.kind = 'sync_writes'
        and results.benchmark = 'fio'
        and results."pass" is distinct from 'throughput'
        and regexp_matches(results.test, '-[0-9]{1,12}\.(write\.c|sync\.)lat_p99$')
),

preferred as (
    select * from tails
    qualify is_sync or not bool_or(is_sync) over (partition by experiment_id, config_id, buffer_bytes)
),

tailed as (
    select
        experiment_id,
        config_id,
        buffer_bytes,
        count(*) as n_p99,
        {{ of_sample('avg', 'value') }} as p99_latency_us,
        {{ of_sample('avg', 'p999', 'p999 is not null') }} as p999_latency_us
    from preferred
    group by experiment_id, config_id, buffer_bytes
),

-- the best of a configuration beside each of its buffers; of equals the smallest
best as (
    select
        *,
        {%- for pass, name, order in (('throughput', 'throughput_kb_per_s', 'desc'), ('latency', 'latency_us', 'asc')) %}
        first_value(mean_{{ name }}) over by_{{ pass }} as best_{{ pass }},
        power(first_value(sd_{{ name }}) over by_{{ pass }}, 2) / nullif(first_value(n_{{ pass }}) over by_{{ pass }}, 0) as best_{{ pass }}_error,
        first_value(n_{{ pass }}) over by_{{ pass }} as best_{{ pass }}_n,
        power(sd_{{ name }}, 2) / nullif(n_{{ pass }}, 0) as {{ pass }}_error,
        {%- endfor %}
        first_value(ratio) over by_ratio as best_ratio,
        first_value(ratio_relative_se) over by_ratio as best_ratio_error,
        first_value(least(n_throughput, n_latency)) over by_ratio as best_ratio_n,
        ratio_relative_se as ratio_error
    from rated
    window
        by_throughput as (partition by experiment_id, config_id order by mean_throughput_kb_per_s desc nulls last, buffer_bytes asc),
        by_latency as (partition by experiment_id, config_id order by mean_latency_us asc nulls last, buffer_bytes asc),
        by_ratio as (partition by experiment_id, config_id order by ratio desc nulls last, buffer_bytes asc)
),

-- a buffer is among the best unless Welch's test tells it from the best one; with one run of either it cannot
told as (
    select
        experiment_id,
        config_id,
        buffer_bytes,
        {%- for pass, name in (('throughput', 'throughput_kb_per_s'), ('latency', 'latency_us')) %}
        case
            when mean_{{ name }} is null then null
            when best_{{ pass }}_error + {{ pass }}_error > 0
                then student_two_sided_p(
                    (mean_{{ name }} - best_{{ pass }}) / sqrt(best_{{ pass }}_error + {{ pass }}_error),
                    {{ satterthwaite('best_' ~ pass ~ '_error', 'best_' ~ pass ~ '_n', pass ~ '_error', 'n_' ~ pass) }}
                ) >= {{ var('lab_level') }}
            else mean_{{ name }} = best_{{ pass }} or best_{{ pass }}_error + {{ pass }}_error is null
        end as is_best_{{ pass }},
        {%- endfor %}
        -- a ratio varies as both its means do
        case
            when ratio is not null
                then coalesce(
                    abs(ln(best_ratio / ratio)) < student_quantile(
                        cast(1 - {{ var('lab_level') }} / 2 as double),
                        cast(nullif(least(n_throughput, n_latency, best_ratio_n) - 1, 0) as double)
                    ) * sqrt(power(ratio_error, 2) + power(best_ratio_error, 2)) or ratio = best_ratio,
                    true
                )
        end as is_best_ratio
    from best
)

select
    points.*,
    tailed.n_p99,
    tailed.p99_latency_us,
    tailed.p999_latency_us,
    told.is_best_throughput,
    told.is_best_latency,
    told.is_best_ratio,
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
from rated as points
inner join {{ ref('dim_experiments') }} as experiments on points.experiment_id = experiments.experiment_id
left join told
    on points.experiment_id = told.experiment_id and points.config_id = told.config_id and points.buffer_bytes = told.buffer_bytes
left join tailed
    on points.experiment_id = tailed.experiment_id and points.config_id = tailed.config_id and points.buffer_bytes = tailed.buffer_bytes
