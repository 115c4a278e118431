{#- Shares with their intervals. RAID groups are drawn, not hours, so that hours of one RAID group are not independent: a design effect says how many
    of them are worth one (Kish). It is that of all x together where `is_pooled` (weeks of one fleet), so that a week without an event is judged
    as the others are. One that few events show says little (a group that would show it may be missing): it is weighed, by events, with that of
    groups in which all hours are alike, which counts `prior_events`. Student's t instead of the normal limit makes the number smaller again
    (Korn and Graubard, Survey Methodology 24, 1998). Wilson's interval takes what is left. tests/proof/test_intervals_cover.py draws fleets for it.
    `clusters`: a relation with measure, class, x, kind, cluster_id, hits, total. -#}
{% macro share_estimates(clusters, is_pooled=false) -%}
{%- set prior_events = 20 -%}
{%- set hits, total = as_decimal('hits'), as_decimal('total') -%}
{%- set numerator, denominator = as_decimal('pool_numerator'), as_decimal('pool_denominator') -%}
shares as (
    select
        measure, class, x, kind,
        cast(sum(hits) as bigint) as numerator,
        cast(sum(total) as bigint) as denominator,
        count(*) as cluster_count,
        cast(sum(hits) as double) / sum(total) as share,
        sum({{ hits }} * {{ hits }}) as hits_squared,
        sum({{ hits }} * {{ total }}) as hits_by_total,
        sum({{ total }} * {{ total }}) as total_squared
    from {{ clusters }}
    group by measure, class, x, kind
),

pooled_shares as (
    select
        *,
{%- for column in ('numerator', 'denominator', 'cluster_count', 'hits_squared', 'hits_by_total', 'total_squared') %}
        sum({{ column }}) over pool as pool_{{ column }}{{ ',' if not loop.last }}
{%- endfor %}
    from shares
    window pool as (partition by measure, class, kind, {{ 'x is null' if is_pooled else 'x' }})
),

effects as (
    select
        *,
        least(pool_numerator, pool_denominator - pool_numerator) as events,
        cast(pool_denominator as double) / pool_cluster_count as alike_effect,
        -- squares of hits - share * total, multiplied out: whole numbers until they are all summed, so that the order of the rows leaves
        -- no trace. They hold while the hours of one RAID group times those of all, cubed, stay below 10^38: 30 billion drive-hours
        cast(
            {{ denominator }} * {{ denominator }} * pool_hits_squared - 2 * {{ numerator }} * {{ denominator }} * pool_hits_by_total
            + {{ numerator }} * {{ numerator }} * pool_total_squared as double
        ) / nullif(cast(pool_denominator as double) * pool_numerator * (pool_denominator - pool_numerator), 0.0)
        * cluster_count / nullif(cluster_count - 1, 0) as seen_effect
    from pooled_shares
),

effective_counts as (
    select
        *,
        least(
            greatest(denominator * (events + {{ prior_events }}) / (events * coalesce(seen_effect, alike_effect) + {{ prior_events }} * alike_effect), 1.0),
            cast(denominator as double)
        ) * 3.8414588206941254 / power({{ student_limit('0.025e0', 'greatest(cluster_count - 1, 2)') }}, 2) as effective_count
    from effects
)

select
    measure, class, x, kind, numerator, denominator, cluster_count, share, effective_count,
    -- the ends at 0 and 1 are exact: rounding must not leave a trace of them
    case
        when cluster_count < {{ least_groups() }} then null
        when numerator = 0 then 0.0
        else {{ wilson_low('share', 'effective_count') }}
    end as share_low,
    case
        when cluster_count < {{ least_groups() }} then null
        when numerator = denominator then 1.0
        else {{ wilson_high('share', 'effective_count') }}
    end as share_high
from effective_counts{% endmacro %}
{#- With fewer RAID groups there is no interval. -#}
{% macro least_groups() %}4{% endmacro %}
{% macro as_decimal(count) %}cast({{ count }} as decimal(19, 0)){% endmacro %}
