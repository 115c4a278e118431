{{ config(meta={'made': 'each_build'}) }}
-- Alerts of drives that became slow together, each with what stands for it: the narrowest place that most of them share. Grain: alert_id.
with by_place as (
    select
        raised.alert_id,
        raised.alert_id || ' ' || cast(episodes.episode_number as string) as episode_id,
        raised.subject_id, raised.episode_count,
        places.place_type, places.place_id,
        episodes.raised_at, episodes.first_slow_hour_utc, episodes.last_slow_hour_utc
    from {{ ref('int_slow_alerts__raised') }} as raised
    inner join {{ ref('int_slow_alerts__episodes') }} as episodes
        on raised.subject_type = episodes.subject_type and raised.subject_id = episodes.subject_id and raised.alert_number = episodes.alert_number
    inner join {{ ref('int_drive_hours__together') }} as places
        on raised.subject_id = places.drive_id and episodes.first_slow_hour_utc = places.hour_utc
    where raised.subject_type = 'drive' and raised.held_back_by is null and places.place_type <> 'raid_group'
),

crowded as ({{ raised_together('by_place') }}),

-- an enclosure that holds most of what its hosts raised meanwhile; where it holds less, they share more than it
enclosures as (
    select own.place_id, own.chain_number
    from crowded as own
    left join crowded as at_host on at_host.place_type = 'host' and own.episode_id = at_host.episode_id
    left join crowded as beside
        on beside.place_type = 'host' and at_host.place_id = beside.place_id and at_host.chain_number = beside.chain_number
    where own.place_type = 'enclosure'
    group by own.place_id, own.chain_number
    having 2 * count(distinct own.episode_id) > count(distinct coalesce(beside.episode_id, own.episode_id))
),

of_enclosures as (
    select crowded.*
    from crowded
    inner join enclosures on crowded.place_id = enclosures.place_id and crowded.chain_number = enclosures.chain_number
    where crowded.place_type = 'enclosure'
),

-- drive-hours that no enclosure explains
left_over as (
    select *
    from by_place
    where place_type = 'host'
        and not exists (select 1 from of_enclosures where of_enclosures.episode_id = by_place.episode_id)
),

chained_alerts as (
    select * from of_enclosures
    union all
    {{ raised_together('left_over') }}
),

-- each time that drives of a place became slow together; what comes back is the same incident, as of a drive
chains as (
    select
        place_type, place_id, chain_number,
        min(case when is_together then raised_at end) as raised_at,
        min(first_slow_hour_utc) as first_slow_hour_utc,
        max(last_slow_hour_utc) as last_slow_hour_utc
    from chained_alerts
    group by place_type, place_id, chain_number
),

{{ with_returns('chains', 'chains', 'place_type, place_id', 'chain_number', 'incident_number') }},

incidents as (
    select
        place_type, place_id, incident_number,
        place_type || ' ' || place_id || ' together ' || cast(min(raised_at) as string) as incident_id,
        min(raised_at) as raised_at,
        max(case when is_reopened then raised_at end) as reopened_at,
        max(episode_number) as episode_count
    from ordered_chains
    group by place_type, place_id, incident_number
),

-- a drive that was mostly slow alone keeps its own alert
mostly_shared as (
    select
        chained_alerts.alert_id,
        chained_alerts.subject_id as drive_id,
        chained_alerts.place_type, chained_alerts.place_id, ordered_chains.incident_number,
        row_number() over (
            partition by chained_alerts.alert_id
            order by count(*) desc, chained_alerts.place_type asc, ordered_chains.incident_number desc
        ) as share_rank
    from chained_alerts
    inner join ordered_chains
        on chained_alerts.place_type = ordered_chains.place_type
        and chained_alerts.place_id = ordered_chains.place_id
        and chained_alerts.chain_number = ordered_chains.chain_number
    group by
        chained_alerts.alert_id, chained_alerts.subject_id, chained_alerts.episode_count, chained_alerts.place_type, chained_alerts.place_id,
        ordered_chains.incident_number
    having 2 * count(*) >= chained_alerts.episode_count
),

members as (
    select
        mostly_shared.alert_id, mostly_shared.drive_id, incidents.place_type, incidents.place_id, incidents.incident_id, incidents.raised_at,
        incidents.reopened_at, incidents.episode_count
    from mostly_shared
    inner join incidents
        on mostly_shared.place_type = incidents.place_type
        and mostly_shared.place_id = incidents.place_id
        and mostly_shared.incident_number = incidents.incident_number
    where mostly_shared.share_rank = 1
),

crowds as (
    select incident_id
    from members
    group by incident_id
    having count(distinct drive_id) >= {{ var('together_drives') }}
)

select
    members.alert_id, members.incident_id, members.place_type, members.place_id, members.raised_at, members.reopened_at, members.episode_count
from members
inner join crowds on members.incident_id = crowds.incident_id
