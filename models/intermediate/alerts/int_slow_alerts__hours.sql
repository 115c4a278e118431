{{ config(meta={'made': 'each_build'}) }}
{%- set work_share = 0.5 %}{#- share of an hour: work that fills more of it fills most -#}
{%- set work_hours = 48 %}{#- from its beginning, in which work holds alerts back -#}
-- Slow hours of drives, and of RAID groups that are slow as a whole against their own past; held back while the array works or maintenance is planned.
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

-- a pool spreads its work over many drives and names them; of a group that is only guessed others may be in another array
work_events as (
    select
        coalesce(events.raid_group_id, drives.current_raid_group_id) as named_raid_group_id,
        events.drive_id, events.event_type,
        events.is_of_drive or (events.raid_group_id is null and drives.is_group_guessed) as is_of_drive,
        events.occurred_at as begun_at,
        coalesce(events.ended_at, events.occurred_at + interval 1 hour) as ended_at,
        max(coalesce(events.ended_at, events.occurred_at + interval 1 hour)) over (
            partition by events.drive_id, events.event_type order by events.occurred_at rows between unbounded preceding and 1 preceding
        ) as earlier_ended_at
    from {{ ref('int_drive_events__identified') }} as events
    left join {{ ref('int_drives') }} as drives on events.drive_id = drives.drive_id
    where events.event_type in ('rebuild', 'scrub')
),

-- each under the groups of all kinds in its array; work that goes on within an hour is the same
works as (
    select distinct
        coalesce(periods.raid_group_id, work_events.named_raid_group_id) as raid_group_id,
        work_events.drive_id, work_events.event_type, work_events.begun_at, work_events.ended_at,
        coalesce(work_events.is_of_drive, false) as is_of_drive,
        max(case when work_events.begun_at <= work_events.earlier_ended_at + interval 1 hour then null else work_events.begun_at end) over (
            partition by work_events.drive_id, work_events.event_type order by work_events.begun_at rows between unbounded preceding and current row
        ) as work_begun_at
    from work_events
    left join {{ ref('int_drives__periods') }} as periods on work_events.named_raid_group_id = periods.named_raid_group_id
),

-- by day, as a pool has thousands of them a day; longer work than four weeks is not looked at
work_days as (
    select works.*, date_trunc('day', works.begun_at) + days.day * interval 1 day as day_utc
    from works
    cross join (values{% for day in range(28) %} ({{ day }}){{ ',' if not loop.last }}{% endfor %}) as days (day)
    where date_trunc('day', works.begun_at) + days.day * interval 1 day < works.ended_at
),

slow_drive_hours as (
    select
        'drive' as subject_type,
        drive_id as subject_id,
        raid_group_id, hour_utc, latency_us, median_latency_us, slowdown, slow_at,
        coalesce(rate_imbalance >= {{ var('imbalanced') }} or size_imbalance >= {{ var('imbalanced') }}, false) as is_imbalanced,
        rate_imbalance
    from {{ ref('int_drive_hours__evidence') }}
    where drive_id not in (select drive_id from {{ ref('int_drives') }} where is_logical)
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
        cast({{ var('group_slowdown') }} as double) as slow_at,
        false as is_imbalanced,
        cast(null as double) as rate_imbalance
    from group_hours
    where group_hours.median_latency_us / group_hours.usual_median_latency_us >= {{ var('group_slowdown') }}
        and group_hours.hour_utc > group_hours.last_hour_utc - interval {{ var('alert_group_days') }} day
),

all_slow_hours as (
    select * from slow_drive_hours
    union all
    select * from slow_group_hours
),

worked_hours as (
    select
        hours.subject_type, hours.subject_id, hours.hour_utc, hours.raid_group_id, hours.slowdown, hours.slow_at, works.event_type,
        works.is_of_drive,
        min(works.work_begun_at) as work_begun_at
    from all_slow_hours as hours
    inner join work_days as works
        on hours.raid_group_id = works.raid_group_id
        and date_trunc('day', hours.hour_utc) = works.day_utc
        and (not works.is_of_drive or works.drive_id = hours.subject_id)
        and works.begun_at < hours.hour_utc + interval 1 hour
        and works.ended_at > hours.hour_utc
    group by
        hours.subject_type, hours.subject_id, hours.hour_utc, hours.raid_group_id, hours.slowdown, hours.slow_at, works.event_type,
        works.is_of_drive, works.drive_id
    having sum({{ hours_between('greatest(works.begun_at, hours.hour_utc)', 'least(works.ended_at, hours.hour_utc + interval 1 hour)') }}) > {{ work_share }}
),

-- drives that the same work names; nothing slow is known of one without a row
workers as (
    select distinct worked_hours.subject_id, worked_hours.hour_utc, worked_hours.event_type, works.drive_id
    from worked_hours
    inner join work_days as works
        on worked_hours.raid_group_id = works.raid_group_id
        and date_trunc('day', worked_hours.hour_utc) = works.day_utc
        and worked_hours.event_type = works.event_type
        and worked_hours.subject_id <> works.drive_id
        and works.begun_at < worked_hours.hour_utc + interval 1 hour
        and works.ended_at > worked_hours.hour_utc
    where worked_hours.is_of_drive
),

other_drives as (
    select
        workers.subject_id, workers.hour_utc, workers.event_type,
        count(*) as drive_count,
        {{ median_of_group('coalesce(slow.slowdown, 1.0)') }} as median_slowdown
    from workers
    left join {{ ref('int_drive_hours__slow') }} as slow on workers.drive_id = slow.drive_id and workers.hour_utc = slow.hour_utc
    group by workers.subject_id, workers.hour_utc, workers.event_type
),

-- an hour is held back by work that neither lasts for too long nor shows that the drive is the slow one. In an array that is scrubbed all drives do
-- the same; in one that rebuilds a drive is written and the rest are read
held_work as (
    select
        worked_hours.subject_type, worked_hours.subject_id, worked_hours.hour_utc, worked_hours.work_begun_at,
        case
            when worked_hours.subject_type = 'drive' and (
                (worked_hours.event_type = 'scrub' and not worked_hours.is_of_drive)
                or (other_drives.drive_count >= {{ var('min_reporting_drives') - 1 }} and worked_hours.slowdown >= worked_hours.slow_at * other_drives.median_slowdown)
            ) then 'slower than the others at the same work'
            when worked_hours.hour_utc >= worked_hours.work_begun_at + interval {{ work_hours }} hour then 'work of more than {{ work_hours }} hours'
        end as despite_work,
        case worked_hours.event_type when 'rebuild' then 'rebuild or recovery' else 'scrub or check' end as held_back_by
    from worked_hours
    left join other_drives
        on worked_hours.subject_id = other_drives.subject_id and worked_hours.hour_utc = other_drives.hour_utc and worked_hours.event_type = other_drives.event_type
),

-- planned maintenance of a drive holds back the hours of its RAID group as a whole, too
maintenance as (
    select
        subjects.subject_type,
        case subjects.subject_type when 'drive' then events.drive_id else drives.current_raid_group_id end as subject_id,
        events.occurred_at, events.ended_at
    from {{ ref('int_drive_events__identified') }} as events
    cross join (values ('drive'), ('raid_group')) as subjects (subject_type)
    left join {{ ref('int_drives') }} as drives on events.drive_id = drives.drive_id
    where events.event_type = 'maintenance'
),

held_hours as (
    select
        subject_type, subject_id, hour_utc,
        max(case when despite_work is null then held_back_by end) as held_back_by,
        min(case when despite_work is null then work_begun_at end) as work_begun_at,
        min(despite_work) as despite_work
    from (
        select * from held_work
        union all
        select
            hours.subject_type, hours.subject_id, hours.hour_utc,
            maintenance.occurred_at as work_begun_at,
            cast(null as string) as despite_work,
            'planned maintenance' as held_back_by
        from all_slow_hours as hours
        inner join maintenance
            on hours.subject_type = maintenance.subject_type
            and hours.subject_id = maintenance.subject_id
            and {{ is_during('maintenance', 'hours.hour_utc') }}
    ) as reasons
    group by subject_type, subject_id, hour_utc
)

select
    all_slow_hours.*, kinds.peer_kind,
    {{ alert_floor('kinds.peer_kind') }} as floor_us,
    held_hours.held_back_by, held_hours.work_begun_at,
    case when held_hours.held_back_by is null then held_hours.despite_work end as despite_work
from all_slow_hours
left join kinds on all_slow_hours.subject_type = kinds.subject_type and all_slow_hours.subject_id = kinds.subject_id
left join held_hours
    on all_slow_hours.subject_type = held_hours.subject_type
    and all_slow_hours.subject_id = held_hours.subject_id
    and all_slow_hours.hour_utc = held_hours.hour_utc
