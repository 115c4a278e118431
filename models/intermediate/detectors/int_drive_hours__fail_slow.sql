-- Ceph's counts, followed over the hours in which a drive has a score: what the count came to. Grain: drive_id, hour_utc.
-- An hour in which the drive, or its array, rebuilds or scrubs is not looked at, as Ceph does not look at an OSD that recovers, backfills or deep-scrubs.
with scored_hours as (
    select outlying.*
    from {{ ref('int_drive_hours__outlying') }} as outlying
    where outlying.fail_slow_score is not null
        and not exists (
            select 1
            from {{ ref('int_drive_events__placed') }} as events
            where events.event_type in ('rebuild', 'scrub')
                and events.raid_group_id = outlying.raid_group_id
                and (events.drive_id = outlying.drive_id or not events.is_of_drive)
                and {{ is_during('events', 'outlying.hour_utc') }}
        )
),

numbered_hours as (
    select
        *,
        row_number() over (partition by drive_id order by hour_utc) as hour_number,
        -- checks that found nothing: each halves the count, down to 0; before the first hour (null) there is no count
        least({{ hours_between('lag(hour_utc) over (partition by drive_id order by hour_utc)', 'hour_utc') }} - 1, 60.0) as rest_hours
    from scored_hours
),

histories as (
    select drive_id, {{ running_score(0, 'hour_number', ['rest_hours'], 'floor(score / power(2.0, day.rest_hours)) + 1') }} as counts
    from numbered_hours
    group by drive_id
)

select
    numbered_hours.drive_id, numbered_hours.hour_utc, numbered_hours.raid_group_id, numbered_hours.peer_count, numbered_hours.latency_us, numbered_hours.median_latency_us,
    numbered_hours.mad_us, numbered_hours.fail_slow_score,
    cast({{ nth('histories.counts', 'numbered_hours.hour_number + 1') }} as bigint) as fail_slow_count
from numbered_hours
inner join histories on numbered_hours.drive_id = histories.drive_id
