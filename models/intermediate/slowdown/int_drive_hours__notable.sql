{{ config(materialized="in_run") }}
-- The drive-hours of RAID-hours worth a closer look, and those with more than their share of the I/Os: what slow hours, outliers, counterfactuals
-- and imbalanced days are made of. The others, five of six, are left out once instead of by each of these. Grain: drive_id, hour_utc.
select
    drive_id,
    hour_utc,
    raid_group_id,
    is_in_population,
    latency_us,
    median_latency_us,
    slowdown,
    rate_imbalance,
    size_imbalance,
{%- for side in ('read', 'write') %}
    {{ side }}_slowdown,
    is_{{ side }}_multiple_in_ticks,
{%- endfor %}
    is_in_notable_hour,
    day_utc
from {{ ref('int_drive_hours__compared') }}
where is_in_notable_hour
    or rate_imbalance >= {{ var('imbalanced') }}
    or size_imbalance >= {{ var('imbalanced') }}
