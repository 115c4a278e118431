{{ config(meta={'made': 'each_build'}) }}
-- Alerts of drives that have become a little slow for good. Grain: drive_id, raised_at.
with turns as (
    select
        days.*,
        standing.left_at,
        days.is_chronic and not coalesce(lag(days.is_chronic) over (partition by days.drive_id order by days.day_utc), false) as is_turn
    from {{ ref('int_drive_days__chronic') }} as days
    left join {{ ref('int_drives__standing') }} as standing on days.drive_id = standing.drive_id
    -- a RAID group that has just begun to report has no usual latency yet, and a silent drive is not known to be well
    where (
        (days.is_chronic and days.window_raid_hours >= {{ var('alert_chronic_raid_hours') }})
        or (days.is_well and not coalesce(standing.is_expected and days.day_utc > standing.last_hour_utc, false))
    )
        and coalesce(days.day_utc < standing.left_at, true)
        and days.drive_id not in (select drive_id from {{ ref('int_drives') }} where is_logical)
),

numbered_turns as (
    select
        *,
        sum(case when is_turn then 1 else 0 end) over (
            partition by drive_id order by day_utc rows between unbounded preceding and current row
        ) as turn_number
    from turns
),

chronic_turns as (
    select
        drive_id, raid_group_id,
        min(day_utc) + interval 1 day as raised_at,
        least(
            min(case when is_well then day_utc end) + interval 1 day,
            case when max(left_at) is not null then greatest(max(left_at), min(day_utc) + interval 1 day) end
        ) as cleared_at,
        min(day_utc) as first_slow_hour_utc,
        max(case when is_chronic then day_utc end) + interval 23 hour as last_slow_hour_utc,
        max_by(window_chronic_hours, case when is_chronic then day_utc end) as slow_hours,
        max(case when is_chronic then window_max_latency_us end) as max_latency_us
    from numbered_turns
    where turn_number > 0
    group by drive_id, raid_group_id, turn_number
),

-- an acute alert hides the chronic one
members as (
    select
        chronic_turns.drive_id, chronic_turns.raised_at,
        max_by(coalesce(together.incident_id, raised.alert_id), raised.raised_at) as part_of
    from chronic_turns
    inner join {{ ref('int_slow_alerts__raised') }} as raised
        on raised.subject_type = 'drive'
        and chronic_turns.drive_id = raised.subject_id
        and raised.held_back_by is null
        and (
            raised.cleared_at is null
            or (chronic_turns.cleared_at is not null and raised.cleared_at >= chronic_turns.cleared_at and raised.raised_at <= chronic_turns.cleared_at)
        )
    left join {{ ref('int_slow_alerts__together') }} as together on raised.alert_id = together.alert_id
    group by chronic_turns.drive_id, chronic_turns.raised_at
)

select
    chronic_turns.drive_id, chronic_turns.raid_group_id, chronic_turns.raised_at, chronic_turns.cleared_at, chronic_turns.first_slow_hour_utc, chronic_turns.last_slow_hour_utc,
    chronic_turns.slow_hours, chronic_turns.max_latency_us, members.part_of, drives.peer_kind,
    {{ alert_floor('drives.peer_kind') }} as floor_us,
    case when chronic_turns.max_latency_us < {{ alert_floor('drives.peer_kind') }} then {{ below_the_floor() }} end as held_back_by
from chronic_turns
left join members on chronic_turns.drive_id = members.drive_id and chronic_turns.raised_at = members.raised_at
left join {{ ref('int_drives') }} as drives on chronic_turns.drive_id = drives.drive_id
