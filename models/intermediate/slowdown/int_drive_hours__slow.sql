{{ config(materialized="by_day") }}
-- Slow and mildly slow drive-hours, and the hour after each: all that intervals are made of.
-- Grain: drive_id, hour_utc.
select
    drive_id,
    hour_utc,
    raid_group_id,
    latency_us,
    median_latency_us,
    slowdown,
    rate_imbalance,
    size_imbalance,
    -- slow in one direction by an exact multiple of its peers, in whole ticks of the firmware's timer
{%- for side in ('read', 'write') %}
    coalesce(is_{{ side }}_multiple_in_ticks and {{ side }}_slowdown >= {{ var('slow_threshold') }}, false){{ " or" if not loop.last else " as is_side_in_ticks," }}
{%- endfor %}
    was_slow,
    was_mild,
    day_utc
from {{ ref('int_drive_hours') }}
where is_in_population and (slowdown >= {{ var('mild_threshold') }} or was_mild)
