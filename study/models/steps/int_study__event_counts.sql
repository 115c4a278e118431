-- Waits, recurrences, outages and events near slow hours: hits of total by RAID group. Grain: measure, class, x, kind, cluster_id.
with severities as (
    select listed.*
    from (
        values
            ('disk', '1.5-2x', '1.5-2x'), ('disk', '2-4x', '2-4x'), ('disk', '4-8x', '4-8x'), ('disk', '8x+', '8x+'),
            -- the paper pools SSDs from 2x on
            ('ssd', '1.5-2x', '1.5-2x'), ('ssd', '2-4x', '2x+'), ('ssd', '4-8x', '2x+'), ('ssd', '8x+', '2x+'),
            ('disk', '2-4x', 'slow'), ('disk', '4-8x', 'slow'), ('disk', '8x+', 'slow'),
            ('ssd', '2-4x', 'slow'), ('ssd', '4-8x', 'slow'), ('ssd', '8x+', 'slow')
    ) as listed (kind, severity, class)
),

waits as (
    -- of a drive's intervals of a severity the one that was answered soonest; a drive that was never unplugged stays
    select
        intervals.drive_id, intervals.kind,
        severities.class,
        coalesce(min(drives.current_raid_group_id), intervals.drive_id) as cluster_id,
        min(intervals.wait_hours) as wait_hours
    from {{ source('intermediate', 'int_slowdown_intervals') }} as intervals
    inner join severities on intervals.kind = severities.kind and intervals.severity = severities.severity
    inner join {{ source('intermediate', 'int_drives') }} as drives on intervals.drive_id = drives.drive_id
    group by intervals.drive_id, intervals.kind, severities.class
),

episodes as (
    select *, coalesce(raid_group_id, drive_id || ' ' || cast(unplugged_at as string)) as cluster_id
    from {{ source('intermediate', 'int_unplug_episodes') }}
    where is_in_population
),

recurrences as (
    select episodes.kind, severities.class, episodes.cluster_id, episodes.recur_hours
    from episodes
    inner join severities on episodes.kind = severities.kind and episodes.preceding_severity = severities.severity
    where episodes.replugged_at is not null
),

events as (
    select *, coalesce(raid_group_id, drive_id || ' ' || cast(occurred_at as string)) as cluster_id
    from {{ source('intermediate', 'int_drive_events') }}
    where is_in_population
),

slow_hours as (
    select slow_hours.drive_id, slow_hours.hour_utc, slow_hours.raid_group_id, drives.kind
    from {{ source('intermediate', 'int_drive_hours__slow') }} as slow_hours
    inner join {{ source('intermediate', 'int_drives') }} as drives on slow_hours.drive_id = drives.drive_id
    where slow_hours.is_slow
),

slow_hours_with_event as (
    select
        slow_hours.drive_id, slow_hours.hour_utc,
        min(abs({{ hour_index('slow_hours.hour_utc') }} - {{ hour_index('events.occurred_at') }})) as hours_between
    from slow_hours
    inner join events on slow_hours.drive_id = events.drive_id
    where events.is_explicit
        and events.occurred_at >= slow_hours.hour_utc - interval {{ var('event_window_hours') | max }} hour
        and events.occurred_at < slow_hours.hour_utc + interval {{ (var('event_window_hours') | max) + 1 }} hour
    group by slow_hours.drive_id, slow_hours.hour_utc
),

windows as (
{%- for hours in var('event_window_hours') %}
    select {{ hours }} as window_hours
    {%- if not loop.last %} union all{% endif %}
{%- endfor %}
)

select
    'wait_hours' as measure,
    waits.class,
    edges.x,
    waits.kind, waits.cluster_id,
    count(case when waits.wait_hours <= edges.x then 1 end) as hits,
    count(*) as total
from waits
inner join ({{ reference_edges('wait_hours') }}) as edges on waits.class = edges.class
group by waits.class, edges.x, waits.kind, waits.cluster_id
union all
select
    'recur_hours' as measure,
    recurrences.class,
    edges.x,
    recurrences.kind, recurrences.cluster_id,
    count(case when recurrences.recur_hours <= edges.x then 1 end) as hits,
    count(*) as total
from recurrences
inner join ({{ reference_edges('recur_hours') }}) as edges on recurrences.class = edges.class
group by recurrences.class, edges.x, recurrences.kind, recurrences.cluster_id
union all
select
    'outage_hours' as measure,
    'all' as class,
    edges.x,
    episodes.kind, episodes.cluster_id,
    count(case when episodes.outage_hours <= edges.x then 1 end) as hits,
    count(*) as total
from episodes
cross join ({{ reference_edges('outage_hours') }}) as edges
where episodes.outage_hours is not null
group by edges.x, episodes.kind, episodes.cluster_id
union all
select
    'replugged' as measure,
    'all' as class,
    cast(null as double) as x,
    kind, cluster_id,
    count(case when is_replugged then 1 end) as hits,
    count(*) as total
from episodes
group by kind, cluster_id
union all
select
    'event_then_slow' as measure,
    'all' as class,
    cast(windows.window_hours as double) as x,
    events.kind, events.cluster_id,
    count(case when events.hours_until_slow <= windows.window_hours then 1 end) as hits,
    count(*) as total
from events
inner join windows on events.hours_until_slowdown <= windows.window_hours
where events.event_type in ('not_spinning', 'not_responding')
group by windows.window_hours, events.kind, events.cluster_id
union all
select
    'slow_hour_with_event' as measure,
    'all' as class,
    cast(windows.window_hours as double) as x,
    slow_hours.kind,
    slow_hours.raid_group_id as cluster_id,
    count(case when slow_hours_with_event.hours_between <= windows.window_hours then 1 end) as hits,
    count(*) as total
from slow_hours
cross join windows
left join slow_hours_with_event
    on slow_hours.drive_id = slow_hours_with_event.drive_id and slow_hours.hour_utc = slow_hours_with_event.hour_utc
group by windows.window_hours, slow_hours.kind, slow_hours.raid_group_id
