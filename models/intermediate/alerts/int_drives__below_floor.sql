{{ config(meta={'made': 'each_build'}) }}
-- Drives whose slow hours of the last four weeks all stay below the floor of concern of their kind: they need nobody. Grain: drive_id.
with recent_hours as (
    select slow.drive_id, max(slow.latency_us) as max_latency_us
    from {{ ref('int_drive_hours__slow') }} as slow
    inner join {{ ref('stg_raw__publication') }} as publication
        on slow.hour_utc > publication.last_hour_utc - interval {{ var('alert_floor_days') }} day
    where slow.is_slow
    group by slow.drive_id
)

select
    recent_hours.drive_id, recent_hours.max_latency_us,
    {{ alert_floor('drives.peer_kind') }} as floor_us,
    {{ below_the_floor() }} as held_back_by
from recent_hours
inner join {{ ref('int_drives') }} as drives on recent_hours.drive_id = drives.drive_id
where recent_hours.max_latency_us < {{ alert_floor('drives.peer_kind') }}
