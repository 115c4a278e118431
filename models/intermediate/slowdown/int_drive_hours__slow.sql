{{ config(materialized="batch_file") }}
-- Slow and mildly slow drive-hours, and the hour after each: all that intervals are made of; stored by RAID-hour.
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
    was_slow,
    was_mild,
    build_seq
from {{ ref('int_drive_hours') }}
where is_in_population and (slowdown >= {{ var('mild_threshold') }} or was_mild)
