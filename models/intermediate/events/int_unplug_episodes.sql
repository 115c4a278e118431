-- Every unplug: how long until the drive came back, whether it did, and when it was slow again. Grain: drive_id, unplugged_at.
with events as (
    select * from {{ ref('int_drive_events__placed') }}
),

unplugs as (
    select
        drive_id,
        occurred_at as unplugged_at,
        hour_utc, raid_group_id, slot, is_in_population,
        lead(occurred_at) over (partition by drive_id order by occurred_at) as next_unplugged_at
    from events
    where event_type = 'unplug'
),

replugs as (
    -- a replug at the next unplug's instant closes this episode; one at this unplug's own instant does not belong to it
    select unplugs.drive_id, unplugs.unplugged_at, min(events.occurred_at) as replugged_at
    from unplugs
    inner join events
        on unplugs.drive_id = events.drive_id
        and events.occurred_at > unplugs.unplugged_at
        and (unplugs.next_unplugged_at is null or events.occurred_at <= unplugs.next_unplugged_at)
    where events.event_type = 'replug'
    group by unplugs.drive_id, unplugs.unplugged_at
),

episodes as (
    select
        unplugs.*,
        replugs.replugged_at,
        -- a drive that is unplugged again must have been plugged in
        replugs.replugged_at is not null or unplugs.next_unplugged_at is not null as is_replugged
    from unplugs
    left join replugs on unplugs.drive_id = replugs.drive_id and unplugs.unplugged_at = replugs.unplugged_at
),

replacements as (
    select episodes.drive_id, episodes.unplugged_at
    from episodes
    inner join events
        on events.event_type = 'replacement'
        and events.hour_utc >= episodes.hour_utc
        and events.drive_id = episodes.drive_id
    union
    select episodes.drive_id, episodes.unplugged_at
    from episodes
    inner join events
        on events.event_type = 'replacement'
        and events.hour_utc >= episodes.hour_utc
        and events.raid_group_id = episodes.raid_group_id
        and events.slot = episodes.slot
    union
    select episodes.drive_id, episodes.unplugged_at
    from episodes
    inner join {{ ref('int_drives__periods') }} as periods
        on periods.raid_group_id = episodes.raid_group_id
        and periods.slot = episodes.slot
        and periods.drive_id <> episodes.drive_id
        and periods.from_hour_utc >= episodes.hour_utc
),

preceding_episodes as (
    select
        episodes.drive_id, episodes.unplugged_at,
        intervals.severity,
        row_number() over (
            partition by episodes.drive_id, episodes.unplugged_at
            order by intervals.started_at desc, intervals.degree desc
        ) as recency_rank
    from episodes
    inner join {{ ref('int_slowdown_intervals') }} as intervals
        on episodes.drive_id = intervals.drive_id and intervals.started_at <= episodes.unplugged_at
    where intervals.severity is not null
),

recurrences as (
    select episodes.drive_id, episodes.unplugged_at, min(slow_hours.hour_utc) as recurred_at
    from episodes
    inner join preceding_episodes
        on episodes.drive_id = preceding_episodes.drive_id
        and episodes.unplugged_at = preceding_episodes.unplugged_at
        and preceding_episodes.recency_rank = 1
    inner join {{ ref('int_drive_hours__slow') }} as slow_hours
        on episodes.drive_id = slow_hours.drive_id
        and slow_hours.hour_utc >= cast(date_trunc('hour', episodes.replugged_at) as timestamp)
    -- slow again means as slow as before: a mild interval recurs at the mild threshold
    where case when preceding_episodes.severity = '1.5-2x' then slow_hours.is_mild else slow_hours.is_slow end
    group by episodes.drive_id, episodes.unplugged_at
)

select
    episodes.drive_id, episodes.unplugged_at,
    drives.kind,
    episodes.raid_group_id, episodes.slot, episodes.is_in_population, episodes.replugged_at,
    {{ hours_between('episodes.unplugged_at', 'episodes.replugged_at') }} as outage_hours,
    episodes.is_replugged,
    not episodes.is_replugged and replacements.drive_id is not null as is_replaced,
    preceding_episodes.severity as preceding_severity,
    {{ hour_index('recurrences.recurred_at') }} - {{ hour_index('episodes.replugged_at') }} as recur_hours
from episodes
left join replacements on episodes.drive_id = replacements.drive_id and episodes.unplugged_at = replacements.unplugged_at
left join preceding_episodes
    on episodes.drive_id = preceding_episodes.drive_id
    and episodes.unplugged_at = preceding_episodes.unplugged_at
    and preceding_episodes.recency_rank = 1
left join recurrences on episodes.drive_id = recurrences.drive_id and episodes.unplugged_at = recurrences.unplugged_at
inner join {{ ref('int_drives') }} as drives on episodes.drive_id = drives.drive_id
