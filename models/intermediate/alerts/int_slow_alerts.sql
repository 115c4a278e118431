{{ config(meta={'made': 'each_build'}) }}
-- Alerts, what an operator should look at: a drive that has become slow, once however often it comes back; drives of one enclosure or host that became slow
-- together, once for all of them and by the narrowest place that most of them share; a RAID group that is slow as a whole against its own
-- past; a drive that has become a little slow for good. Also those that a floor of concern holds back. Grain: subject_type, subject_id, reason, raised_at.
with together as (
    select
        incidents.incident_id, incidents.place_type, incidents.place_id, incidents.raised_at, incidents.reopened_at, incidents.episode_count,
        case when count(raised.cleared_at) = count(*) then max(raised.cleared_at) end as cleared_at,
        min(raised.first_slow_hour_utc) as first_slow_hour_utc,
        max(raised.last_slow_hour_utc) as last_slow_hour_utc,
        cast(sum(raised.slow_hours) as bigint) as slow_hours,
        cast(sum(raised.imbalanced_hours) as bigint) as imbalanced_hours,
        cast(sum(raised.load_known_hours) as bigint) as load_known_hours,
        max(raised.max_slowdown) as max_slowdown,
        count(distinct raised.subject_id) as drive_count,
        case when min(raised.raid_group_id) = max(raised.raid_group_id) then min(raised.raid_group_id) end as raid_group_id
    from {{ ref('int_slow_alerts__together') }} as incidents
    inner join {{ ref('int_slow_alerts__raised') }} as raised on incidents.alert_id = raised.alert_id
    group by
        incidents.incident_id, incidents.place_type, incidents.place_id, incidents.raised_at, incidents.reopened_at, incidents.episode_count
)

select
    raised.alert_id, raised.subject_type, raised.subject_id, raised.reason, raised.raid_group_id, raised.raised_at, raised.cleared_at,
    raised.episode_count, raised.reopened_at, raised.first_slow_hour_utc, raised.last_slow_hour_utc, raised.slow_hours,
    raised.imbalanced_hours, raised.load_known_hours, raised.load_ratio,
    cast(raised.drive_count as bigint) as drive_count,
    raised.median_slowdown, raised.max_slowdown, raised.worst_hour_utc, raised.latency_us, raised.median_latency_us,
    members.incident_id as part_of,
    raised.despite_work, raised.peer_kind, raised.max_latency_us, raised.floor_us, raised.held_back_by
from {{ ref('int_slow_alerts__raised') }} as raised
left join {{ ref('int_slow_alerts__together') }} as members on raised.alert_id = members.alert_id
union all
select
    incident_id as alert_id,
    place_type as subject_type,
    place_id as subject_id,
    'together' as reason,
    raid_group_id, raised_at, cleared_at, episode_count, reopened_at, first_slow_hour_utc, last_slow_hour_utc, slow_hours, imbalanced_hours,
    load_known_hours,
    cast(null as double) as load_ratio,
    drive_count,
    cast(null as double) as median_slowdown,
    max_slowdown,
    cast(null as timestamp) as worst_hour_utc,
    cast(null as double) as latency_us,
    cast(null as double) as median_latency_us,
    cast(null as string) as part_of,
    cast(null as string) as despite_work,
    cast(null as string) as peer_kind,
    cast(null as double) as max_latency_us,
    cast(null as double) as floor_us,
    cast(null as string) as held_back_by
from together
union all
select
    'drive ' || drive_id || ' chronic ' || cast(raised_at as string) as alert_id,
    'drive' as subject_type,
    drive_id as subject_id,
    'chronic' as reason,
    raid_group_id, raised_at, cleared_at,
    cast(1 as bigint) as episode_count,
    cast(null as timestamp) as reopened_at,
    first_slow_hour_utc, last_slow_hour_utc,
    cast(slow_hours as bigint) as slow_hours,
    cast(0 as bigint) as imbalanced_hours,
    cast(0 as bigint) as load_known_hours,
    cast(null as double) as load_ratio,
    cast(1 as bigint) as drive_count,
    cast(null as double) as median_slowdown,
    cast(null as double) as max_slowdown,
    cast(null as timestamp) as worst_hour_utc,
    cast(null as double) as latency_us,
    cast(null as double) as median_latency_us,
    part_of,
    cast(null as string) as despite_work,
    peer_kind, max_latency_us, floor_us, held_back_by
from {{ ref('int_slow_alerts__chronic') }}
