{%- set rounds = 10 %}{#- parts of a run -#}
{%- set window = 5 %}{#- of these, the last; as many as SNIA asks for -#}
{%- set least_round_s = 1 %}{#- logs of shorter rounds show single I/Os, not a rate -#}
{%- set most_range_ratio = 0.2 %}{#- SNIA PTS-E 2.0, steady state: the range of the window over its mean -#}
{%- set most_slope_ratio = 0.1 %}{#- the same: rise of the line through the window over its mean -#}
-- Whether jobs of fio had become steady when they ended. Grain: experiment_id, config_id, phase, run_number, file, job, metric, direction, criterion.
with rates as (
    select
        experiment_id, config_id, phase, run_number, file, job, metric, direction, time_s,
        -- a log of single I/Os has their sizes, one of averages has rates
        case when metric = 'clat' then block_bytes else value end as rate,
        min(time_s) over run as first_s,
        (max(time_s) over run) - min(time_s) over run as span_s
    from {{ ref('fct_bench_samples') }}
    where (metric = 'clat' and block_bytes > 0) or (metric in ('bw', 'iops') and block_bytes = 0)
    window run as (partition by experiment_id, config_id, phase, run_number, file, job, metric)
),

rounds as (
    select
        experiment_id, config_id, phase, run_number, file, job, metric, direction,
        least(cast(floor((time_s - first_s) * {{ rounds }} / span_s) as bigint), {{ rounds - 1 }}) as round,
        case when metric = 'clat' then sum(rate) else avg(rate) end as rate
    from rates
    where span_s >= {{ rounds * least_round_s }}
    group by experiment_id, config_id, phase, run_number, file, job, metric, direction, round
),

-- a part without an I/O has the rate 0
windows as (
    select
        experiment_id, config_id, phase, run_number, file, job, metric, direction,
        sum(rate) / {{ window }} as mean_rate,
        max(rate) - case when count(*) = {{ window }} then min(rate) else 0 end as range_rate,
        -- of the line by least squares; the squares of -2 to 2 add up to 10
        sum(rate * (round - {{ rounds - 1 - window // 2 }})) * {{ window - 1 }} / {{ window * (window * window - 1) / 12 }} as rise_rate
    from rounds
    where round >= {{ rounds - window }}
    group by experiment_id, config_id, phase, run_number, file, job, metric, direction
)

select
    experiment_id, config_id, phase, run_number, file, job, metric, direction,
    'SNIA' as criterion,
    range_rate / mean_rate as range_ratio,
    rise_rate / mean_rate as slope_ratio,
    range_ratio <= {{ most_range_ratio }} and abs(slope_ratio) <= {{ most_slope_ratio }} as is_steady
from windows
union all
select
    listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file, jobs.job,
    null as metric,
    null as direction,
    max(jobs.steady_criterion) as criterion,
    null as range_ratio,
    null as slope_ratio,
    bool_and(jobs.is_steady) as is_steady
from {{ source('lab', 'bench_jobs') }} as jobs
inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
where jobs.is_steady is not null and jobs.failure is null
group by listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file, jobs.job
