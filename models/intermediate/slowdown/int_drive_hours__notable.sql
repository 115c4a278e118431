{{ config(meta={'made': 'with_days'}) }}
-- The drive-hours of RAID-hours worth a closer look: what slow hours, outliers and counterfactuals are made of. Grain: drive_id, hour_utc.
select
    drive_id, hour_utc, raid_group_id, is_in_population, latency_us, median_latency_us, slowdown, is_slow, is_mild, slow_at, mild_at,
    rate_imbalance, size_imbalance, judged_slowdown, judged_median_latency_us,
{%- for side in ('read', 'write') %}
    {{ side }}_latency_us,
    median_{{ side }}_latency_us,
    {{ side }}_slowdown,
{%- endfor %}
    day_utc
from {{ ref('int_drive_hours__compared') }}
where is_in_notable_hour
