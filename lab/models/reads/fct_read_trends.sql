{%- set lab_drift_bins = 20 %}{#- stretches of equal length, each with the median of its reads -#}
{%- set lab_drift_least_bins = 10 %}{#- of fewer that have a read, no trend is said -#}
{%- set lab_drift_share = 0.5 %}{#- share of the medians' variance that a straight line explains, from which it is a drift -#}
-- Trends of reads over a whole phase: a drift, files that are always slow, two speeds in random order. Grain: experiment_id, config_id, phase.
with spans as (
    select
        *,
        min(midpoint_s) over phases as first_s,
        (max(midpoint_s) over phases) - min(midpoint_s) over phases as span_s
    from {{ ref('step_lab__timed_reads') }}
    window phases as (partition by experiment_id, config_id, phase)
),

bins as (
    select
        experiment_id, config_id, phase, span_s,
        least(floor((midpoint_s - first_s) / nullif(span_s, 0) * {{ lab_drift_bins }}), {{ lab_drift_bins }} - 1) as bin,
        median(throughput_bytes_per_s) as speed
    from spans
    where not is_slow_file
    group by all
),

lines as (
    select
        experiment_id, config_id, phase,
        max(span_s) as span_s,
        count(*) as bins,
        -- rounded, for the order of the bins is in the last bits
        round(regr_slope(speed, bin), 3) as slope,
        round(regr_intercept(speed, bin), 3) as start,
        round(regr_r2(speed, bin), 9) as explained,
        -- of the slope, its error by least squares
        round(sqrt(
            greatest(1 - regr_r2(speed, bin), 0) * var_samp(speed) / nullif(var_samp(bin), 0) / nullif(count(*) - 2, 0)
        ), 3) as slope_error
    from bins
    where bin is not null
    group by experiment_id, config_id, phase
    having count(*) >= {{ lab_drift_least_bins }}
),

phases as (
    select
        experiment_id, config_id, phase,
        min(low_ratio) as low_ratio,
        min(order_p) as order_p,
        nullif(array_to_string(list_sort(list(distinct file_name) filter (where is_slow_file)), ', '), '') as slow_files,
        1 - {{ of_sample('avg', 'throughput_bytes_per_s / baseline_bytes_per_s', 'is_slow_file') }} as slow_files_drop_ratio
    from {{ ref('step_lab__timed_reads') }}
    group by experiment_id, config_id, phase
)

select
    phases.*,
    lines.span_s as span_seconds,
    lines.slope * {{ lab_drift_bins }} / lines.start as drift_ratio,
    (lines.slope - student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(lines.bins - 2 as double)) * lines.slope_error)
    * {{ lab_drift_bins }} / lines.start as low_drift_ratio,
    (lines.slope + student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(lines.bins - 2 as double)) * lines.slope_error)
    * {{ lab_drift_bins }} / lines.start as high_drift_ratio,
    coalesce(
        lines.explained >= {{ lab_drift_share }} and (low_drift_ratio > 0 or high_drift_ratio < 0), false
    ) as is_drift,
    coalesce(phases.order_p >= {{ var('lab_level') }}, false) as is_random_order
from phases
left join lines using (experiment_id, config_id, phase)
