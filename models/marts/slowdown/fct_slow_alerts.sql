{{ config(meta={'made': 'each_build'}) }}
-- Alerts, what an operator should look at; fct_held_alerts has what is held back. Grain: subject_type, subject_id, reason, raised_at.
select
    alert_id, subject_type, subject_id, reason, raid_group_id, raised_at, cleared_at, episode_count, reopened_at, first_slow_hour_utc,
    last_slow_hour_utc, slow_hours, imbalanced_hours, load_known_hours, load_ratio, drive_count, median_slowdown, max_slowdown, worst_hour_utc,
    latency_us, median_latency_us, part_of, despite_work
from {{ ref('int_slow_alerts') }}
where held_back_by is null
