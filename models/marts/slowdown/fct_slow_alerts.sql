-- What somebody should look at: a drive that has become slow, once per run of slow hours; drives of one host (of one enclosure, where
-- inventory names no host) that became slow together, once for all of them. Grain: subject_type, subject_id, reason, raised_at.
with slow_hours as (
    select
        slow.drive_id,
        slow.raid_group_id,
        slow.hour_utc,
        slow.latency_us,
        slow.median_latency_us,
        slow.slowdown,
        coalesce(slow.rate_imbalance >= {{ var('imbalanced') }} or slow.size_imbalance >= {{ var('imbalanced') }}, false) as is_imbalanced
    from {{ ref('int_drive_hours__slow') }} as slow
    where slow.slowdown >= {{ var('slow_threshold') }}
        -- who works on a drive knows that it is slow
        and not exists (
            select 1
            from {{ ref('stg_raw__drive_events') }} as events
            where events.drive_id = slow.drive_id
                and events.event_type = 'maintenance'
                and events.occurred_at < slow.hour_utc + interval 1 hour
                and coalesce(events.ended_at, events.occurred_at + interval 1 hour) > slow.hour_utc
        )
),

followed as (
    select
        *,
        max(hour_utc) over (partition by drive_id) as last_of_drive_utc,
        coalesce(
            hour_utc <= lag(hour_utc) over (partition by drive_id order by hour_utc) + interval {{ var('alert_clear_hours') }} hour, false
        ) as is_continued,
        coalesce(
            hour_utc < min(hour_utc) over ({{ so_many_before(var('alert_slow_hours') - 1, 'drive_id', 'hour_utc') }})
            + interval {{ var('alert_window_hours') }} hour,
            false
        ) as is_acute
    from slow_hours
),

numbered as (
    select
        *,
        sum(case when is_continued then 0 else 1 end) over (
            partition by drive_id order by hour_utc rows between unbounded preceding and current row
        ) as run_number
    from followed
),

ranked as (
    select
        *,
        row_number() over (partition by drive_id, run_number order by slowdown desc, hour_utc asc) as worst_rank
    from numbered
),

runs as (
    select
        drive_id,
        min(case when is_acute then hour_utc end) as raised_at,
        min(hour_utc) as first_slow_hour_utc,
        max(hour_utc) as last_slow_hour_utc,
        max(last_of_drive_utc) as last_of_drive_utc,
        max_by(raid_group_id, hour_utc) as raid_group_id,
        count(*) as slow_hours,
        count(case when is_imbalanced then 1 end) as imbalanced_hours,
        max(slowdown) as max_slowdown,
        max(case when worst_rank = 1 then hour_utc end) as worst_hour_utc,
        max(case when worst_rank = 1 then latency_us end) as latency_us,
        max(case when worst_rank = 1 then median_latency_us end) as median_latency_us
    from ranked
    group by drive_id, run_number
),

acute as (
    select
        runs.*,
        -- quiet for long enough, and known to be: the RAID group's hours (or a later run of its own) reach that far
        case
            when greatest(raid_groups.last_hour_utc, runs.last_of_drive_utc)
                >= runs.last_slow_hour_utc + interval {{ var('alert_clear_hours') }} hour
                then runs.last_slow_hour_utc + interval {{ var('alert_clear_hours') }} hour
        end as cleared_at,
        case when drives.host is not null then 'host' when drives.enclosure is not null then 'enclosure' end as place_type,
        -- an enclosure's name need not be unique beyond its host
        coalesce(drives.host, drives.enclosure) as place_id
    from runs
    left join {{ ref('dim_drives') }} as drives on runs.drive_id = drives.drive_id
    left join {{ ref('dim_raid_groups') }} as raid_groups on drives.current_raid_group_id = raid_groups.raid_group_id
    where runs.raised_at is not null
),

neighbours as (
    select
        *,
        coalesce(
            raised_at <= lag(raised_at) over (partition by place_type, place_id order by raised_at, drive_id)
            + interval {{ var('alert_clear_hours') }} hour,
            false
        ) as is_joined,
        -- a drive's own alerts are further apart than the window: as many alerts are as many drives
        coalesce(
            raised_at < min(raised_at) over ({{ so_many_before(var('alert_together_drives') - 1, 'place_type, place_id', 'raised_at, drive_id') }})
            + interval {{ var('alert_window_hours') }} hour,
            false
        ) as is_together
    from acute
    where place_id is not null
),

chained as (
    select
        *,
        sum(case when is_joined then 0 else 1 end) over (
            partition by place_type, place_id order by raised_at, drive_id rows between unbounded preceding and current row
        ) as chain_number
    from neighbours
),

together as (
    select
        place_type,
        place_id,
        chain_number,
        min(case when is_together then raised_at end) as raised_at,
        case when count(cleared_at) = count(*) then max(cleared_at) end as cleared_at,
        min(first_slow_hour_utc) as first_slow_hour_utc,
        max(last_slow_hour_utc) as last_slow_hour_utc,
        cast(sum(slow_hours) as bigint) as slow_hours,
        cast(sum(imbalanced_hours) as bigint) as imbalanced_hours,
        max(max_slowdown) as max_slowdown,
        count(distinct drive_id) as drive_count,
        case when min(raid_group_id) = max(raid_group_id) then min(raid_group_id) end as raid_group_id
    from chained
    group by place_type, place_id, chain_number
    having count(case when is_together then 1 end) > 0
),

of_places as (
    select
        place_type || ' ' || place_id || ' together ' || cast(raised_at as varchar) as alert_id,
        *
    from together
),

members as (
    select
        chained.drive_id,
        chained.raised_at,
        of_places.alert_id as part_of
    from chained
    inner join of_places
        on chained.place_type = of_places.place_type
        and chained.place_id = of_places.place_id
        and chained.chain_number = of_places.chain_number
)

select
    'drive ' || acute.drive_id || ' acute ' || cast(acute.raised_at as varchar) as alert_id,
    'drive' as subject_type,
    acute.drive_id as subject_id,
    'acute' as reason,
    acute.raid_group_id,
    acute.raised_at,
    acute.cleared_at,
    acute.first_slow_hour_utc,
    acute.last_slow_hour_utc,
    acute.slow_hours,
    acute.imbalanced_hours,
    cast(1 as bigint) as drive_count,
    acute.max_slowdown,
    acute.worst_hour_utc,
    acute.latency_us,
    acute.median_latency_us,
    members.part_of
from acute
left join members on acute.drive_id = members.drive_id and acute.raised_at = members.raised_at
union all
select
    alert_id,
    place_type as subject_type,
    place_id as subject_id,
    'together' as reason,
    raid_group_id,
    raised_at,
    cleared_at,
    first_slow_hour_utc,
    last_slow_hour_utc,
    slow_hours,
    imbalanced_hours,
    drive_count,
    max_slowdown,
    cast(null as timestamp) as worst_hour_utc,
    cast(null as double) as latency_us,
    cast(null as double) as median_latency_us,
    cast(null as varchar) as part_of
from of_places
