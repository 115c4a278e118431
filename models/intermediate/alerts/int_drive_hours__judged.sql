{{ config(meta={'made': 'each_build'}) }}
-- Slow drive-hours that count for a verdict: evidence, of drives that are no logical volumes. Grain: drive_id, hour_utc.
select
    slow.drive_id, slow.raid_group_id, slow.hour_utc, slow.latency_us, slow.median_latency_us, slow.slowdown, slow.slow_at,
    slow.rate_imbalance, slow.size_imbalance
from {{ ref('int_drive_hours__evidence') }} as slow
where slow.drive_id not in (select drive_id from {{ ref('int_drives') }} where is_logical)
    -- ignore slow hours during maintenance
    and not exists (
        select 1
        from {{ ref('int_drive_events__identified') }} as events
        where events.drive_id = slow.drive_id
            and events.event_type = 'maintenance'
            and {{ is_during('events', 'slow.hour_utc') }}
    )
