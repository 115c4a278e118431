{#- probes of a suspect within these hours count together: what came before is of a state that somebody may have changed -#}
{% set pooled_hours = 2 %}
{#- least slices of each sample; with fewer there is no interval -#}
{% set fewest_slices = 3 %}
{#- reads of every slice from which it carries a percentile: some of them lie above it -#}
{% set carried_from = [('p99', 500), ('p95', 100), ('p90', 50), ('p50', 10)] %}
{#- that no interval of a probe misses its ratio: two kinds of reads, mean and percentile of each -#}
{% set confidence = 0.95 %}
{% set comparisons = 4 %}
-- How many times its peers' latency a suspect has, each probe with those before it: Welch's interval of the difference of the logarithms of slices.
-- Grain: suspect_id, probed_at, pattern, measure.
with pooled_probes as (
    select
        probes.suspect_id, runs.probed_at,
        probes.probed_at as run_at,
        probes.is_suspect, probes.pattern, probes.read_count, probes.mean_us, probes.p50_us, probes.p90_us, probes.p95_us, probes.p99_us,
        case
            {%- for percentile, reads in carried_from %}
            when min(probes.read_count) over (partition by probes.suspect_id, runs.probed_at, probes.pattern) >= {{ reads }} then '{{ percentile }}'
            {%- endfor %}
        end as percentile
    from (select distinct suspect_id, probed_at from {{ ref('int_drive_probes') }}) as runs
    inner join {{ ref('int_drive_probes') }} as probes
        on runs.suspect_id = probes.suspect_id
        and probes.probed_at <= runs.probed_at
        and probes.probed_at > runs.probed_at - interval {{ pooled_hours }} hour
    where probes.read_count > 0
),

measured_probes as (
    select *, 'mean' as measure, mean_us as latency_us
    from pooled_probes
    union all
    select
        *,
        percentile as measure,
        case percentile{% for name, _ in carried_from %} when '{{ name }}' then {{ name }}_us{% endfor %} end as latency_us
    from pooled_probes
    where percentile is not null
),

samples as (
    select
        suspect_id, probed_at, pattern, measure,
        count(distinct run_at) as run_count,
        sum(case when is_suspect then read_count end) as read_count,
        {%- for side, condition in [('own', 'is_suspect'), ('peer', 'not is_suspect')] %}
        cast(count(case when {{ condition }} then latency_us end) as double) as {{ side }}_slices,
        avg(case when {{ condition }} then ln(latency_us) end) as {{ side }}_log,
        var_samp(case when {{ condition }} then ln(latency_us) end) as {{ side }}_variance{{ ',' if not loop.last }}
        {%- endfor %}
    from measured_probes
    where latency_us > 0
    group by suspect_id, probed_at, pattern, measure
),

errors as (
    select
        *,
        own_log - peer_log as log_ratio,
        own_variance / own_slices + peer_variance / peer_slices as variance
    from samples
),

widths as (
    select
        tested.*,
        thresholds.mild_at as slow_from,
        case
            when own_slices < {{ fewest_slices }} or peer_slices < {{ fewest_slices }} then null
            when variance = 0 then 0
            else sqrt(variance) * {{ student_limit('cast(' ~ (1 - confidence) / 2 / comparisons ~ ' as double)', 'freedom') }}
        end as half_width
    from (
        select
            *,
            {{ satterthwaite('own_variance / own_slices', 'own_slices', 'peer_variance / peer_slices', 'nullif(peer_slices, 1)') }} as freedom
        from errors
    ) as tested
    left join {{ ref('int_drives') }} as drives on tested.suspect_id = drives.drive_id
    inner join {{ ref('int_thresholds') }} as thresholds on thresholds.kind = coalesce(drives.kind, 'unknown')
),

judged_probes as (
    select
        *,
        case
            when log_ratio - half_width >= ln(slow_from) then 'slow'
            when log_ratio + half_width < ln(slow_from) then 'not_slow'
            else 'cannot_say'
        end as verdict
    from widths
)

select
    suspect_id, probed_at, pattern, measure, verdict, slow_from,
    cast(run_count as bigint) as run_count,
    cast(read_count as bigint) as read_count,
    exp(own_log) as latency_us,
    exp(peer_log) as peer_latency_us,
    exp(log_ratio) as ratio,
    exp(log_ratio - half_width) as ratio_low,
    exp(log_ratio + half_width) as ratio_high,
    -- an interval is as wide as one over the root of the runs
    case
        when verdict = 'cannot_say'
            then cast(ceil(run_count * (power(half_width / nullif(log_ratio - ln(slow_from), 0), 2) - 1)) as bigint)
    end as more_runs
from judged_probes
