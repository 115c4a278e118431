{#- Shares with the interval of a linearised ratio estimator: RAID groups are drawn, not hours, so that hours of one RAID group are not
    independent. Its variance gives the number of independent observations that Wilson's interval takes. `clusters`: a relation with
    measure, class, x, kind, cluster_id, hits, total. -#}
{% macro share_estimates(clusters) -%}
{%- set hits, total, numerator, denominator = as_decimal('hits'), as_decimal('total'), as_decimal('numerator'), as_decimal('denominator') -%}
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

variances as (
    select
        *,
        -- of hits - share * total, squared and multiplied out: whole numbers until they are all summed, so that the order of the rows leaves
        -- no trace. They hold while the hours of one RAID group times those of all, cubed, stay below 10^38: 30 billion drive-hours
        cast(
            {{ denominator }} * {{ denominator }} * hits_squared - 2 * {{ numerator }} * {{ denominator }} * hits_by_total
            + {{ numerator }} * {{ numerator }} * total_squared as double
        ) / power(cast(denominator as double), 2) as squared_residuals
    from shares
),

effective as (
    select
        *,
        case
            when cluster_count = 1 then 1.0
            when numerator in (0, denominator) then cast(cluster_count as double)
            else least(
                greatest(
                    coalesce(
                        share * (1 - share)
                        / nullif(squared_residuals * cluster_count / (cluster_count - 1) / power(cast(denominator as double), 2), 0.0),
                        cast(denominator as double)
                    ),
                    1.0
                ),
                cast(denominator as double)
            )
        end as effective_count
    from variances
)

select
    measure, class, x, kind, numerator, denominator, cluster_count, share, effective_count,
    -- the ends at 0 and 1 are exact: rounding must not leave a trace of them
    case when numerator = 0 then 0.0 else {{ wilson_low('share', 'effective_count') }} end as share_low,
    case when numerator = denominator then 1.0 else {{ wilson_high('share', 'effective_count') }} end as share_high
from effective{% endmacro %}
{% macro as_decimal(count) %}cast({{ count }} as decimal(19, 0)){% endmacro %}
