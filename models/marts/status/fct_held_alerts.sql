{{ config(meta={'made': 'each_build'}) }}
-- Alerts that would be raised, but for the floor of concern of its kind. Grain: alert_id.
select
    alert_id, subject_type, subject_id, reason, raid_group_id, peer_kind, raised_at, cleared_at, slow_hours, max_slowdown, max_latency_us,
    floor_us, held_back_by
from {{ ref('int_slow_alerts') }}
where held_back_by is not null
