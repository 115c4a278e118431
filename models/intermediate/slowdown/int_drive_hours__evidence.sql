{{ config(meta={'made': 'by_day'}) }}
-- Slow drive-hours that are evidence: what verdicts are made of. Compared with the drives that are evidence too. Grain: drive_id, hour_utc.
select
    drive_id, hour_utc, raid_group_id, latency_us,
    judged_median_latency_us as median_latency_us,
    judged_slowdown as slowdown,
    rate_imbalance, size_imbalance, slow_at, day_utc
from {{ ref('int_drive_hours__notable') }}
where is_in_population and judged_slowdown >= slow_at
