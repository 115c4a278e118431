{{ config(meta={'made': 'each_build'}) }}
-- Slow hours that raise no alert: those that work on the array or maintenance holds back, and alerts below the floor of concern.
-- Grain: subject_type, subject_id, reason, held_back_by, begun_at.
with held_hours as (
    select
        subject_type, subject_id,
        case subject_type when 'drive' then 'acute' else 'whole_group' end as reason,
        held_back_by,
        max_by(raid_group_id, hour_utc) as raid_group_id,
        min(hour_utc) as begun_at,
        max(hour_utc) as ended_at,
        count(*) as slow_hours,
        max(slowdown) as max_slowdown,
        max(latency_us) as max_latency_us
    from {{ ref('int_slow_alerts__hours') }}
    where held_back_by is not null
    group by subject_type, subject_id, held_back_by, work_begun_at
    union all
    select
        subject_type, subject_id, reason, held_back_by, raid_group_id,
        first_slow_hour_utc as begun_at,
        last_slow_hour_utc as ended_at,
        slow_hours, max_slowdown, max_latency_us
    from {{ ref('int_slow_alerts') }}
    where held_back_by is not null
)

select
    held_hours.subject_type, held_hours.subject_id, held_hours.reason,
    coalesce(drives.host, raid_groups.host) as host,
    drives.device, held_hours.raid_group_id, held_hours.held_back_by, held_hours.begun_at, held_hours.ended_at, held_hours.slow_hours, held_hours.max_slowdown, held_hours.max_latency_us
from held_hours
left join {{ ref('int_drives') }} as drives on held_hours.subject_type = 'drive' and held_hours.subject_id = drives.drive_id
left join {{ ref('int_raid_groups') }} as raid_groups on held_hours.subject_type = 'raid_group' and held_hours.subject_id = raid_groups.raid_group_id
