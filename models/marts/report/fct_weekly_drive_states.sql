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

followed as (
    select
        *,
        lag(week_utc) over (partition by drive_id order by week_utc) as last_slow_week_utc,
        lead(week_utc) over (partition by drive_id order by week_utc) as next_slow_week_utc
    from slow_weeks
),

-- slow in the week before, and not in this one
ended as (
    select
        followed.drive_id,
        weeks.week_utc,
        followed.week_utc as last_slow_week_utc,
        followed.slow_hours as earlier_slow_hours
    from followed
    inner join weeks on weeks.week_utc = followed.week_utc + interval 7 day
    where coalesce(followed.next_slow_week_utc <> weeks.week_utc, true)
),

measured as (
    select ended.drive_id, ended.week_utc, cast(sum(days.slowdown_hours) as bigint) as drive_hours
    from ended
    inner join {{ ref('int_drive_days') }} as days
        on ended.drive_id = days.drive_id
        and cast(days.day_utc as timestamp) >= ended.week_utc
        and cast(days.day_utc as timestamp) < ended.week_utc + interval 7 day
    group by ended.drive_id, ended.week_utc
),

states as (
    select
        followed.week_utc, followed.drive_id,
        case
            when followed.last_slow_week_utc is null then 'new'
            when followed.last_slow_week_utc = followed.week_utc - interval 7 day then 'continuing'
            else 'reopened'
        end as state,
        followed.slow_hours, followed.max_slowdown,
        coalesce(earlier.slow_hours, 0) as earlier_slow_hours,
        followed.last_slow_week_utc
    from followed
    left join slow_weeks as earlier on followed.drive_id = earlier.drive_id and earlier.week_utc = followed.week_utc - interval 7 day
    union all
    select
        ended.week_utc, ended.drive_id,
        -- a drive without a slowdown is not known to be well
        case when measured.drive_hours > 0 then 'resolved' else 'unseen' end as state,
        0 as slow_hours,
        cast(null as double) as max_slowdown,
        ended.earlier_slow_hours, ended.last_slow_week_utc
    from ended
    left join measured on ended.drive_id = measured.drive_id and ended.week_utc = measured.week_utc
)

select
    states.week_utc, states.drive_id,
    drives.kind,
    states.state, states.slow_hours, states.max_slowdown, states.earlier_slow_hours, states.last_slow_week_utc
from states
inner join {{ ref('dim_drives') }} as drives on states.drive_id = drives.drive_id
