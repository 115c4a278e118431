{{ config(meta={'made': 'each_build'}) }}
-- Slow hours that count for alerts: of drives, and of RAID groups that are slow as a whole against their own past, but those in which the array works.
-- Grain: subject_type, subject_id, hour_utc.
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
        drive_id as subject_id,
        raid_group_id, hour_utc, latency_us, median_latency_us, slowdown,
        coalesce(rate_imbalance >= {{ var('imbalanced') }} or size_imbalance >= {{ var('imbalanced') }}, false) as is_imbalanced,
        rate_imbalance
    from {{ ref('int_drive_hours__judged') }}
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
        cast(null as double) as rate_imbalance
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
)

select
    all_slow_hours.*, kinds.peer_kind,
    {{ alert_floor('kinds.peer_kind') }} as floor_us
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
