-- Latencies of the single I/Os in logs of fio, by second and over a whole run. Grain: experiment_id, config_id, phase, run_number, job, metric, direction, is_whole_run, second.
{%- set percentiles = {'p99_us': 0.99, 'p999_us': 0.999} %}
with ios as (
    select
        experiment_id, config_id, phase, run_number, job, metric, direction,
        cast(floor(time_s - min(time_s) over (partition by experiment_id, config_id, phase, run_number, job, metric)) as bigint) as second,
        case unit when 'ns' then value / 1000 else value end as latency_us
    from {{ ref('fct_bench_samples') }}
    -- an average over a time has no size of an I/O
    where metric in ('lat', 'clat') and block_bytes > 0
),

spans as (
    select *, false as is_whole_run from ios
    union all
    select * replace (0 as second), true as is_whole_run from ios
)

select
    experiment_id, config_id, phase, run_number, job, metric, direction, is_whole_run, second,
    count(*) as n,
    {{ of_sample('avg', 'latency_us') }} as mean_us,
    max(latency_us) as max_us,
    {%- for name, share in percentiles.items() %}
    -- fewer than ten above it do not show it
    case when count(*) >= {{ 10 / (1 - share) }} - 0.5 then quantile_disc(latency_us, {{ share }}) end as {{ name }}{{ ',' if not loop.last }}
    {%- endfor %}
from spans
group by experiment_id, config_id, phase, run_number, job, metric, direction, is_whole_run, second
