{{ config(meta={'made': 'each_build'}) }}
{%- set again_days = 28 %}{#- days without a slow hour after which a drive that is slow again raises another alert, not the same once more -#}
{%- set longest_clearing = 7 %}{#- times alert_clear_hours that an alert takes to clear at most; it takes as many as it came back -#}
{%- set is_reopened %}coalesce(
            first_slow_hour_utc
            > earlier_slow_hour_utc + least(episode_number - 1, {{ longest_clearing }}) * interval {{ var('alert_clear_hours') }} hour,
            false
        )
{%- endset %}
-- Alerts, what an operator should look at: a drive that has become slow, once however often it comes back; drives of one enclosure or host that became slow
-- together, once for all of them and by the narrowest place that most of them share; a RAID group that is slow as a whole against its own
-- past; a drive that has become a little slow for good. Also those that a floor of concern holds back. Grain: subject_type, subject_id, reason, raised_at.
with kinds as (
    select 'drive' as subject_type, drive_id as subject_id, peer_kind
    from {{ ref('int_drives') }}
    union all
    select 'raid_group' as subject_type, current_raid_group_id as subject_id, min(peer_kind) as peer_kind
    from {{ ref('int_drives') }}
    where current_raid_group_id is not null
    group by current_raid_group_id
),

working as (
    select
        coalesce(events.raid_group_id, drives.current_raid_group_id) as named_raid_group_id,
        case when events.is_of_drive then events.drive_id end as drive_id,
        events.occurred_at as begun_at,
        coalesce(events.ended_at, events.occurred_at + interval 1 hour) as ended_at
    from {{ ref('int_drive_events__identified') }} as events
    left join {{ ref('int_drives') }} as drives on events.drive_id = drives.drive_id
    where events.event_type in ('rebuild', 'scrub')
),

-- an array that rebuilds, scrubs, checks or resyncs is slow for that: its event names it, by the groups of all its kinds
works as (
    select distinct
        coalesce(periods.raid_group_id, working.named_raid_group_id) as raid_group_id,
        working.drive_id, working.begun_at, working.ended_at
    from working
    left join {{ ref('int_drives__periods') }} as periods on working.named_raid_group_id = periods.named_raid_group_id
),

slow_drive_hours as (
    select
        'drive' as subject_type,
        slow.drive_id as subject_id,
        slow.raid_group_id, slow.hour_utc, slow.latency_us, slow.median_latency_us, slow.slowdown,
        coalesce(slow.rate_imbalance >= {{ var('imbalanced') }} or slow.size_imbalance >= {{ var('imbalanced') }}, false) as is_imbalanced,
        slow.rate_imbalance is not null as is_load_known
    from {{ ref('int_drive_hours__slow') }} as slow
    where slow.is_slow
        -- who works on a drive knows that it is slow
        and not exists (
            select 1
            from {{ ref('int_drive_events__identified') }} as events
            where events.drive_id = slow.drive_id
                and events.event_type = 'maintenance'
                and events.occurred_at < slow.hour_utc + interval 1 hour
                and coalesce(events.ended_at, events.occurred_at + interval 1 hour) > slow.hour_utc
        )
),

recent_hours as (
    select
        raid_hours.raid_group_id, raid_hours.hour_utc, raid_hours.median_latency_us,
        raid_groups.last_hour_utc,
        dayofweek(raid_hours.hour_utc) as day_of_week,
        hour(raid_hours.hour_utc) as hour_of_day
    from {{ ref('int_raid_hours') }} as raid_hours
    inner join {{ ref('int_raid_groups') }} as raid_groups
        on raid_hours.raid_group_id = raid_groups.raid_group_id
        and raid_hours.hour_utc
        > raid_groups.last_hour_utc - interval {{ var('alert_group_days') }} day - interval {{ 7 * var('group_past_weeks') }} day
    where raid_hours.is_valid
),

-- windows over every hour cost thirty times as much: an hour far above its past is far above the least of it
suspect_slots as (
    select raid_group_id, day_of_week, hour_of_day
    from recent_hours
    group by raid_group_id, day_of_week, hour_of_day
    having max(median_latency_us) / min(median_latency_us) >= {{ var('group_slowdown') }}
),

group_hours as (
    select
        recent_hours.raid_group_id, recent_hours.hour_utc, recent_hours.median_latency_us, recent_hours.last_hour_utc,
        {{ usual_median('recent_hours') }} as usual_median_latency_us
    from recent_hours
    inner join suspect_slots
        on recent_hours.raid_group_id = suspect_slots.raid_group_id
        and recent_hours.day_of_week = suspect_slots.day_of_week
        and recent_hours.hour_of_day = suspect_slots.hour_of_day
),

slow_group_hours as (
    select
        'raid_group' as subject_type,
        group_hours.raid_group_id as subject_id,
        group_hours.raid_group_id, group_hours.hour_utc,
        group_hours.median_latency_us as latency_us,
        group_hours.usual_median_latency_us as median_latency_us,
        group_hours.median_latency_us / group_hours.usual_median_latency_us as slowdown,
        false as is_imbalanced,
        false as is_load_known
    from group_hours
    where group_hours.median_latency_us / group_hours.usual_median_latency_us >= {{ var('group_slowdown') }}
        and group_hours.hour_utc > group_hours.last_hour_utc - interval {{ var('alert_group_days') }} day
        and not exists (
            select 1
            from {{ ref('int_drive_events__identified') }} as events
            inner join {{ ref('int_drives') }} as drives on events.drive_id = drives.drive_id
            where drives.current_raid_group_id = group_hours.raid_group_id
                and events.event_type = 'maintenance'
                and events.occurred_at < group_hours.hour_utc + interval 1 hour
                and coalesce(events.ended_at, events.occurred_at + interval 1 hour) > group_hours.hour_utc
        )
),

all_slow_hours as (
    select * from slow_drive_hours
    union all
    select * from slow_group_hours
),

slow_hours as (
    select all_slow_hours.*, kinds.peer_kind, {{ alert_floor('kinds.peer_kind') }} as floor_us
    from all_slow_hours
    left join kinds on all_slow_hours.subject_type = kinds.subject_type and all_slow_hours.subject_id = kinds.subject_id
    where not exists (
        select 1
        from works
        where works.raid_group_id = all_slow_hours.raid_group_id
            and (works.drive_id is null or works.drive_id = all_slow_hours.subject_id)
            and works.begun_at < all_slow_hours.hour_utc + interval 1 hour
            and works.ended_at > all_slow_hours.hour_utc
    )
),

followed as (
    select
        *,
        max(hour_utc) over (partition by subject_type, subject_id) as last_of_subject_utc,
        coalesce(
            hour_utc <= lag(hour_utc) over (partition by subject_type, subject_id order by hour_utc) + interval {{ var('alert_clear_hours') }} hour, false
        ) as is_continued,
        coalesce(
            hour_utc < min(hour_utc) over ({{ first_of_rows(var('alert_slow_hours'), 'subject_type, subject_id', 'hour_utc') }})
            + interval {{ var('alert_window_hours') }} hour,
            false
        ) as is_acute
    from slow_hours
),

numbered as (
    select
        *,
        sum(case when is_continued then 0 else 1 end) over (
            partition by subject_type, subject_id order by hour_utc rows between unbounded preceding and current row
        ) as run_number
    from followed
),

runs as (
    select
        subject_type, subject_id, run_number,
        min(case when is_acute then hour_utc end) as acute_at,
        -- no hour below the floor is of concern
        min(case when latency_us >= floor_us then hour_utc end) as reached_at,
        min(hour_utc) as first_slow_hour_utc,
        max(hour_utc) as last_slow_hour_utc
    from numbered
    group by subject_type, subject_id, run_number
),

acute_runs as (
    select *, greatest(acute_at, coalesce(reached_at, acute_at)) as raised_at
    from runs
    where acute_at is not null
),

{{ with_returns('runs', 'acute_runs', 'subject_type, subject_id', 'run_number', 'alert_number', again_days) }}

episodes as (
    select *, {{ is_reopened }} as is_reopened
    from ordered_runs
),

alert_hours as (
    select
        numbered.*,
        episodes.alert_number, episodes.episode_number, episodes.raised_at, episodes.reached_at, episodes.is_reopened,
        row_number() over (
            partition by numbered.subject_type, numbered.subject_id, episodes.alert_number order by numbered.slowdown desc, numbered.hour_utc asc
        ) as worst_rank
    from numbered
    inner join episodes
        on numbered.subject_type = episodes.subject_type
        and numbered.subject_id = episodes.subject_id
        and numbered.run_number = episodes.run_number
),

alerts as (
    select
        subject_type, subject_id, alert_number,
        coalesce(min(case when reached_at is not null then raised_at end), min(raised_at)) as raised_at,
        max(case when is_reopened then raised_at end) as reopened_at,
        max(episode_number) as episode_count,
        max(latency_us) as max_latency_us,
        max(peer_kind) as peer_kind,
        max(floor_us) as floor_us,
        min(hour_utc) as first_slow_hour_utc,
        max(hour_utc) as last_slow_hour_utc,
        max(last_of_subject_utc) as last_of_subject_utc,
        max_by(raid_group_id, hour_utc) as raid_group_id,
        count(*) as slow_hours,
        count(case when is_imbalanced then 1 end) as imbalanced_hours,
        count(case when is_load_known then 1 end) as load_known_hours,
        {{ median_of_group('slowdown') }} as median_slowdown,
        max(slowdown) as max_slowdown,
        max(case when worst_rank = 1 then hour_utc end) as worst_hour_utc,
        max(case when worst_rank = 1 then latency_us end) as latency_us,
        max(case when worst_rank = 1 then median_latency_us end) as median_latency_us
    from alert_hours
    group by subject_type, subject_id, alert_number
),

timed as (
    select
        *,
        -- the more often it came back, the longer it has to be quiet
        last_slow_hour_utc + least(episode_count, {{ longest_clearing }}) * interval {{ var('alert_clear_hours') }} hour as quiet_at
    from alerts
),

raised as (
    select
        alerts.*,
        case when alerts.max_latency_us < alerts.floor_us then {{ below_the_floor() }} end as held_back_by,
        alerts.subject_type || ' ' || alerts.subject_id || case alerts.subject_type when 'drive' then ' acute ' else ' whole_group ' end
        || cast(alerts.raised_at as string) as alert_id,
        case alerts.subject_type when 'drive' then 'acute' else 'whole_group' end as reason,
        -- quiet for long enough, and known to be: the RAID group's hours (or a later run of its own) reach that far, and the drive has not gone silent before
        case
            when greatest(
                case when standing.is_expected and standing.last_hour_utc < raid_groups.last_hour_utc then standing.last_hour_utc else raid_groups.last_hour_utc end,
                alerts.last_of_subject_utc
            ) >= alerts.quiet_at
                then alerts.quiet_at
        end as cleared_at,
        case alerts.subject_type when 'drive' then 1 else raid_groups.data_drive_count end as drive_count
    from timed as alerts
    left join {{ ref('int_drives') }} as drives on alerts.subject_type = 'drive' and alerts.subject_id = drives.drive_id
    left join {{ ref('int_drives__standing') }} as standing on drives.drive_id = standing.drive_id
    left join {{ ref('int_raid_groups') }} as raid_groups
        on raid_groups.raid_group_id = case alerts.subject_type when 'drive' then drives.current_raid_group_id else alerts.subject_id end
),

-- each time that a drive became slow, by the places it is in
by_place as (
    select
        raised.alert_id,
        raised.alert_id || ' ' || cast(episodes.episode_number as string) as episode_id,
        raised.subject_id,
        places.place_type, places.place_id,
        episodes.raised_at, episodes.first_slow_hour_utc, episodes.last_slow_hour_utc
    from raised
    inner join episodes
        on raised.subject_type = episodes.subject_type and raised.subject_id = episodes.subject_id and raised.alert_number = episodes.alert_number
    inner join {{ ref('int_drives__places') }} as places on raised.subject_type = 'drive' and raised.subject_id = places.drive_id
    where raised.held_back_by is null
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

-- what no enclosure explains
left_over as (
    select *
    from by_place
    where place_type = 'host'
        and not exists (select 1 from of_enclosures where of_enclosures.episode_id = by_place.episode_id)
),

chained as (
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
    from chained
    group by place_type, place_id, chain_number
),

{{ with_returns('chains', 'chains', 'place_type, place_id', 'chain_number', 'incident_number', again_days) }}

incidents as (
    select
        place_type, place_id, incident_number,
        place_type || ' ' || place_id || ' together ' || cast(min(raised_at) as string) as incident_id,
        min(raised_at) as raised_at,
        max(case when {{ is_reopened }} then raised_at end) as reopened_at,
        max(episode_number) as episode_count
    from ordered_chains
    group by place_type, place_id, incident_number
),

-- a drive that was mostly slow alone keeps its own alert
shared as (
    select
        chained.alert_id, chained.place_type, chained.place_id,
        ordered_chains.incident_number,
        count(*) as shared_count
    from chained
    inner join ordered_chains
        on chained.place_type = ordered_chains.place_type
        and chained.place_id = ordered_chains.place_id
        and chained.chain_number = ordered_chains.chain_number
    group by chained.alert_id, chained.place_type, chained.place_id, ordered_chains.incident_number
),

mostly_shared as (
    select
        shared.*,
        row_number() over (partition by shared.alert_id order by shared.shared_count desc, shared.place_type asc, shared.incident_number desc) as share_place
    from shared
    inner join raised on shared.alert_id = raised.alert_id
    where 2 * shared.shared_count >= raised.episode_count
),

together as (
    select
        incidents.place_type, incidents.place_id, incidents.incident_number, incidents.incident_id, incidents.raised_at,
        incidents.reopened_at, incidents.episode_count,
        case when count(raised.cleared_at) = count(*) then max(raised.cleared_at) end as cleared_at,
        min(raised.first_slow_hour_utc) as first_slow_hour_utc,
        max(raised.last_slow_hour_utc) as last_slow_hour_utc,
        cast(sum(raised.slow_hours) as bigint) as slow_hours,
        cast(sum(raised.imbalanced_hours) as bigint) as imbalanced_hours,
        cast(sum(raised.load_known_hours) as bigint) as load_known_hours,
        max(raised.max_slowdown) as max_slowdown,
        count(distinct raised.subject_id) as drive_count,
        case when min(raised.raid_group_id) = max(raised.raid_group_id) then min(raised.raid_group_id) end as raid_group_id
    from mostly_shared
    inner join incidents
        on mostly_shared.place_type = incidents.place_type
        and mostly_shared.place_id = incidents.place_id
        and mostly_shared.incident_number = incidents.incident_number
    inner join raised on mostly_shared.alert_id = raised.alert_id
    where mostly_shared.share_place = 1
    group by
        incidents.place_type, incidents.place_id, incidents.incident_number, incidents.incident_id,
        incidents.raised_at, incidents.reopened_at, incidents.episode_count
    having count(distinct raised.subject_id) >= {{ var('together_drives') }}
),

members as (
    select mostly_shared.alert_id, together.incident_id as part_of
    from mostly_shared
    inner join together
        on mostly_shared.place_type = together.place_type
        and mostly_shared.place_id = together.place_id
        and mostly_shared.incident_number = together.incident_number
    where mostly_shared.share_place = 1
),

turns as (
    select
        days.*,
        days.is_chronic and not coalesce(lag(days.is_chronic) over (partition by days.drive_id order by days.day_utc), false) as is_turn
    from {{ ref('int_drive_days__chronic') }} as days
    left join {{ ref('int_drives__standing') }} as standing on days.drive_id = standing.drive_id
    -- what is usual for a RAID group that has just begun to report is not known, nor is a drive that went silent known to be well
    where (days.is_chronic and days.window_raid_hours >= {{ var('alert_chronic_raid_hours') }})
        or (days.is_well and not coalesce(standing.is_expected and days.day_utc > standing.last_hour_utc, false))
),

numbered_turns as (
    select
        *,
        sum(case when is_turn then 1 else 0 end) over (
            partition by drive_id order by day_utc rows between unbounded preceding and current row
        ) as turn_number
    from turns
),

chronic as (
    select
        drive_id, raid_group_id,
        min(day_utc) + interval 1 day as raised_at,
        min(case when is_well then day_utc end) + interval 1 day as cleared_at,
        min(day_utc) as first_slow_hour_utc,
        max(case when is_chronic then day_utc end) + interval 23 hour as last_slow_hour_utc,
        max_by(window_chronic_hours, case when is_chronic then day_utc end) as slow_hours,
        max(case when is_chronic then window_max_latency_us end) as max_latency_us
    from numbered_turns
    where turn_number > 0
    group by drive_id, raid_group_id, turn_number
),

-- who looks at a drive that is slow need not hear that it is a little slow as well
chronic_members as (
    select
        chronic.drive_id, chronic.raised_at,
        max_by(coalesce(members.part_of, raised.alert_id), raised.raised_at) as part_of
    from chronic
    inner join raised
        on raised.subject_type = 'drive'
        and chronic.drive_id = raised.subject_id
        and raised.held_back_by is null
        and (
            raised.cleared_at is null
            or (chronic.cleared_at is not null and raised.cleared_at >= chronic.cleared_at and raised.raised_at <= chronic.cleared_at)
        )
    left join members on raised.alert_id = members.alert_id
    group by chronic.drive_id, chronic.raised_at
)

select
    raised.alert_id, raised.subject_type, raised.subject_id, raised.reason, raised.raid_group_id, raised.raised_at, raised.cleared_at,
    raised.episode_count, raised.reopened_at, raised.first_slow_hour_utc, raised.last_slow_hour_utc, raised.slow_hours,
    raised.imbalanced_hours, raised.load_known_hours,
    cast(raised.drive_count as bigint) as drive_count,
    raised.median_slowdown, raised.max_slowdown, raised.worst_hour_utc, raised.latency_us, raised.median_latency_us,
    members.part_of,
    raised.peer_kind, raised.max_latency_us, raised.floor_us, raised.held_back_by
from raised
left join members on raised.alert_id = members.alert_id
union all
select
    incident_id as alert_id,
    place_type as subject_type,
    place_id as subject_id,
    'together' as reason,
    raid_group_id, raised_at, cleared_at, episode_count, reopened_at, first_slow_hour_utc, last_slow_hour_utc, slow_hours, imbalanced_hours,
    load_known_hours, drive_count,
    cast(null as double) as median_slowdown,
    max_slowdown,
    cast(null as timestamp) as worst_hour_utc,
    cast(null as double) as latency_us,
    cast(null as double) as median_latency_us,
    cast(null as string) as part_of,
    cast(null as string) as peer_kind,
    cast(null as double) as max_latency_us,
    cast(null as double) as floor_us,
    cast(null as string) as held_back_by
from together
union all
select
    'drive ' || chronic.drive_id || ' chronic ' || cast(chronic.raised_at as string) as alert_id,
    'drive' as subject_type,
    chronic.drive_id as subject_id,
    'chronic' as reason,
    chronic.raid_group_id, chronic.raised_at, chronic.cleared_at,
    cast(1 as bigint) as episode_count,
    cast(null as timestamp) as reopened_at,
    chronic.first_slow_hour_utc, chronic.last_slow_hour_utc,
    cast(chronic.slow_hours as bigint) as slow_hours,
    cast(0 as bigint) as imbalanced_hours,
    cast(0 as bigint) as load_known_hours,
    cast(1 as bigint) as drive_count,
    cast(null as double) as median_slowdown,
    cast(null as double) as max_slowdown,
    cast(null as timestamp) as worst_hour_utc,
    cast(null as double) as latency_us,
    cast(null as double) as median_latency_us,
    chronic_members.part_of,
    kinds.peer_kind,
    chronic.max_latency_us,
    {{ alert_floor('kinds.peer_kind') }} as floor_us,
    case when chronic.max_latency_us < {{ alert_floor('kinds.peer_kind') }} then {{ below_the_floor() }} end as held_back_by
from chronic
left join chronic_members on chronic.drive_id = chronic_members.drive_id and chronic.raised_at = chronic_members.raised_at
left join kinds on kinds.subject_type = 'drive' and chronic.drive_id = kinds.subject_id
