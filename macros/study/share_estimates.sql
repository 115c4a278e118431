{#- Shares with the interval of a linearised ratio estimator: RAID groups are drawn, not hours, so that hours of one RAID group are not
    independent. Its variance gives the number of independent observations that Wilson's interval takes. `clusters`: a relation with
    measure, class, x, kind, cluster_id, hits, total. -#}
{% macro share_estimates(clusters) %}shares as (
    select
        measure,
        class,
        x,
        kind,
        cast(sum(hits) as bigint) as numerator,
        cast(sum(total) as bigint) as denominator,
        count(*) as cluster_count,
        cast(sum(hits) as double) / sum(total) as share
    from {{ clusters }}
    group by measure, class, x, kind
),

variances as (
    select
        shares.measure,
        shares.class,
        shares.x,
        shares.kind,
        sum(power({{ clusters }}.hits - shares.share * {{ clusters }}.total, 2)) as squared_residuals
    from shares
    inner join {{ clusters }}
        on shares.measure = {{ clusters }}.measure
        and shares.class = {{ clusters }}.class
        and coalesce(shares.x, -1) = coalesce({{ clusters }}.x, -1)
        and shares.kind = {{ clusters }}.kind
    group by shares.measure, shares.class, shares.x, shares.kind
),

effective as (
    select
        shares.*,
        case
            when shares.cluster_count = 1 then 1.0
            when shares.numerator in (0, shares.denominator) then cast(shares.cluster_count as double)
            else least(
                greatest(
                    coalesce(
                        shares.share * (1 - shares.share)
                        / nullif(
                            variances.squared_residuals * shares.cluster_count / (shares.cluster_count - 1)
                            / power(cast(shares.denominator as double), 2),
                            0.0
                        ),
                        cast(shares.denominator as double)
                    ),
                    1.0
                ),
                cast(shares.denominator as double)
            )
        end as effective_count
    from shares
    inner join variances
        on shares.measure = variances.measure
        and shares.class = variances.class
        and coalesce(shares.x, -1) = coalesce(variances.x, -1)
        and shares.kind = variances.kind
)

select
    measure,
    class,
    x,
    kind,
    numerator,
    denominator,
    cluster_count,
    share,
    effective_count,
    -- the ends at 0 and 1 are exact: rounding must not leave a trace of them
    case when numerator = 0 then 0.0 else {{ wilson_low('share', 'effective_count') }} end as share_low,
    case when numerator = denominator then 1.0 else {{ wilson_high('share', 'effective_count') }} end as share_high
from effective{% endmacro %}
