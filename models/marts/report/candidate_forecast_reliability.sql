{%- set forecast_probability_edges = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5] %}{#- of the reliability diagram -#}
-- Whether a slow interval began as often as each rule foretold: a reliability diagram. Grain: kind, horizon_days, rule, probability_band.
with banded as (
    select
        *,
        case
{%- for edge in forecast_probability_edges %}
            when slow_probability < {{ edge }} then 'below {{ edge }}'
{%- endfor %}
            else '{{ forecast_probability_edges[-1] }} and more'
        end as probability_band
    from {{ ref('int_raid_groups__forecasts') }}
)

select
    kind,
    horizon_days,
    rule,
    probability_band,
    cast(sum(drive_count) as bigint) as forecast_count,
    -- in billionths, so that they add up in any order
    cast(sum(cast(round(1000000000 * drive_count * slow_probability) as bigint)) as double) / 1000000000.0 / sum(drive_count) as mean_probability,
    cast(sum(slow_count) as bigint) as slow_count,
    cast(sum(slow_count) as double) / sum(drive_count) as slow_ratio
from banded
group by kind, horizon_days, rule, probability_band
