-- How often each cause makes drives slow, over all weeks (week_utc null) and week by week. Grain: cause, kind, week_utc.
with shares as (
    select
        class as cause,
        kind, x,
{%- for measure in ('interval_count', 'slow_hours') %}
        max(case when measure = '{{ measure }}' then numerator end) as {{ measure }},
        max(case when measure = '{{ measure }}' then denominator end) as all_{{ measure }},
{%- for column in ('share', 'share_low', 'share_high') %}
        max(case when measure = '{{ measure }}' then {{ column }} end) as {{ measure }}_{{ column }},
{%- endfor %}
{%- endfor %}
        max(cluster_count) as raid_group_count
    from {{ ref('int_causes__shares') }}
    group by class, kind, x
)

select
    shares.cause, shares.kind,
    {{ hour_at('shares.x') }} as week_utc,
    shares.interval_count, shares.all_interval_count,
    shares.interval_count_share as interval_share,
    shares.interval_count_share_low as interval_share_low,
    shares.interval_count_share_high as interval_share_high,
    shares.slow_hours, shares.all_slow_hours,
    shares.slow_hours_share as slow_hour_share,
    shares.slow_hours_share_low as slow_hour_share_low,
    shares.slow_hours_share_high as slow_hour_share_high,
    shares.raid_group_count
from shares
