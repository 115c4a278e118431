-- Which drives became slow, were slow again, stayed slow or ceased to be, from one ISO week (UTC) to the next. Grain: week_utc, drive_id.
with slow_weeks as (
    select
        drive_id,
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        count(*) as slow_hours,
        max(slowdown) as max_slowdown
    from {{ ref('int_drive_hours__slow') }}
    where is_slow
    group by drive_id, cast(date_trunc('week', hour_utc) as timestamp)
),

weeks as (
    select distinct cast(date_trunc('week', cast(day_utc as timestamp)) as timestamp) as week_utc
    from {{ ref('int_raid_group_days') }}
    where raid_hours > 0
),

followed_weeks as (
    select
        *,
        lag(week_utc) over (partition by drive_id order by week_utc) as last_slow_week_utc,
        lead(week_utc) over (partition by drive_id order by week_utc) as next_slow_week_utc
    from slow_weeks
),

-- slow in the week before, and not in this one
ended_weeks as (
    select
        followed_weeks.drive_id,
        weeks.week_utc,
        followed_weeks.week_utc as last_slow_week_utc,
        followed_weeks.slow_hours as earlier_slow_hours
    from followed_weeks
    inner join weeks on weeks.week_utc = followed_weeks.week_utc + interval 7 day
    where coalesce(followed_weeks.next_slow_week_utc <> weeks.week_utc, true)
),

measured_weeks as (
    select ended_weeks.drive_id, ended_weeks.week_utc, cast(sum(days.slowdown_hours) as bigint) as drive_hours
    from ended_weeks
    inner join {{ ref('int_drive_days') }} as days
        on ended_weeks.drive_id = days.drive_id
        and cast(days.day_utc as timestamp) >= ended_weeks.week_utc
        and cast(days.day_utc as timestamp) < ended_weeks.week_utc + interval 7 day
    group by ended_weeks.drive_id, ended_weeks.week_utc
),

states as (
    select
        followed_weeks.week_utc, followed_weeks.drive_id,
        case
            when followed_weeks.last_slow_week_utc is null then 'new'
            when followed_weeks.last_slow_week_utc = followed_weeks.week_utc - interval 7 day then 'continuing'
            else 'reopened'
        end as state,
        followed_weeks.slow_hours, followed_weeks.max_slowdown,
        coalesce(earlier.slow_hours, 0) as earlier_slow_hours,
        followed_weeks.last_slow_week_utc
    from followed_weeks
    left join slow_weeks as earlier on followed_weeks.drive_id = earlier.drive_id and earlier.week_utc = followed_weeks.week_utc - interval 7 day
    union all
    select
        ended_weeks.week_utc, ended_weeks.drive_id,
        -- a drive without a slowdown is not known to be well
        case when measured_weeks.drive_hours > 0 then 'resolved' else 'unseen' end as state,
        0 as slow_hours,
        cast(null as double) as max_slowdown,
        ended_weeks.earlier_slow_hours, ended_weeks.last_slow_week_utc
    from ended_weeks
    left join measured_weeks on ended_weeks.drive_id = measured_weeks.drive_id and ended_weeks.week_utc = measured_weeks.week_utc
)

select
    states.week_utc, states.drive_id,
    drives.kind,
    states.state, states.slow_hours, states.max_slowdown, states.earlier_slow_hours, states.last_slow_week_utc
from states
inner join {{ ref('dim_drives') }} as drives on states.drive_id = drives.drive_id
