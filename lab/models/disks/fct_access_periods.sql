{%- set lab_period_correlation = 0.3 %}{#- least autocorrelation of a busy share that has a period -#}
-- Whether a device is busy in turns: its busy share by second, idle gaps and the period. Grain: experiment_id, config_id, phase, run_number, file, device.
with seconds as (
    select
        *,
        lag(is_idle) over (
            partition by experiment_id, config_id, phase, run_number, file, device order by bin asc
        ) as was_idle
    from {{ ref('fct_busy_seconds') }}
),

totals as (
    select
        experiment_id, config_id, phase, run_number, file, device,
        count(*) as bins,
        count(*) filter (where is_idle and not coalesce(was_idle, false)) as idle_gaps,
        count(*) filter (where is_idle) as idle_seconds,
        sum(busy_ns) / 1e9 / count(*) as duty_cycle
    from seconds
    group by experiment_id, config_id, phase, run_number, file, device
),

-- a lag whose correlation is no smaller than those on both sides of it
peaks as (
    select
        *,
        lag(correlation) over (partition by experiment_id, config_id, phase, run_number, file, device order by lag_seconds asc) as before,
        lead(correlation) over (partition by experiment_id, config_id, phase, run_number, file, device order by lag_seconds asc) as after
    from {{ ref('step_lab__autocorrelations') }}
),

periods as (
    select experiment_id, config_id, phase, run_number, file, device, lag_seconds, correlation
    from peaks
    where lag_seconds >= 2
        and lag_seconds <= bins // 2
        and correlation >= {{ lab_period_correlation }}
        and correlation > before
        and correlation >= after
    qualify row_number() over (
        partition by experiment_id, config_id, phase, run_number, file, device order by correlation desc, lag_seconds asc
    ) = 1
)

select
    totals.* exclude (idle_seconds),
    totals.idle_seconds / nullif(cast(totals.idle_gaps as double), 0) as mean_gap_seconds,
    cast(periods.lag_seconds as double) as period_seconds,
    periods.correlation as period_correlation
from totals
left join periods using (experiment_id, config_id, phase, run_number, file, device)
