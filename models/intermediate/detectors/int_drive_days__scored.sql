{%- set tikv_slow_share = 0.1 %}{#- share of the hours of a day, from which the score doubles: DISK_TIMEOUT_RATIO_THRESHOLD -#}
{%- set iaso_increase = 5 %}{#- for each slow hour of a day; ours, the paper prints none -#}
-- Scores that slow days drive up and quiet ones bring down: TiKV's and one like IASO's. Grain: drive_id, day_utc.
with slow_drives as (
    select distinct drive_id
    from {{ ref('int_drive_days') }}
    where slow_hours > 0
),

days as (
    select
        days.drive_id, days.day_utc,
        cast(sum(days.slowdown_hours) as bigint) as drive_hours,
        cast(sum(days.slow_hours) as bigint) as slow_hours,
        max(days.slow_at) as slow_at
    from {{ ref('int_drive_days') }} as days
    inner join slow_drives on days.drive_id = slow_drives.drive_id
    group by days.drive_id, days.day_utc
    -- a day without a slowdown says nothing: the scores stay
    having sum(days.slowdown_hours) > 0
),

numbered_days as (
    select
        *,
        cast(row_number() over (partition by drive_id order by day_utc) as bigint) as day_number,
        count(case when slow_hours > 0 then 1 end) over (
            partition by drive_id order by day_utc rows between unbounded preceding and current row
        ) as slow_day_number
    from days
),

placed_days as (
    select
        *,
        day_number - max(case when slow_hours > 0 then day_number end) over (
            partition by drive_id order by day_number rows between unbounded preceding and current row
        ) as quiet_days,
        day_number - max(case when slow_hours > 0 then day_number end) over (
            partition by drive_id order by day_number rows between unbounded preceding and 1 preceding
        ) - 1 as quiet_days_before
    from numbered_days
),

slow_days as (
    select
        drive_id, slow_day_number,
        cast(slow_hours as double) as slow_hours,
        coalesce(quiet_days_before, 0) as rest_days,
        1.0 + least(cast(slow_hours as double) / drive_hours, {{ tikv_slow_share }}) / {{ tikv_slow_share }} as growth
    from placed_days
    where slow_hours > 0
),

-- quiet days bring a score down before the next slow one drives it up
histories as (
    select
        drive_id,
        {{ running_score(1, 'slow_day_number', ['rest_days', 'growth'], 'least(100.0, ' ~ tikv_score_after('score', 'day.rest_days') ~ ' * day.growth)') }} as tikv_scores,
        {{ running_score(0, 'slow_day_number', ['rest_days', 'slow_hours'],
            'least(100.0, ' ~ iaso_score_after('score', 'day.rest_days') ~ ' + ' ~ iaso_increase ~ ' * day.slow_hours)') }} as iaso_scores
    from slow_days
    group by drive_id
)

select
    placed_days.drive_id, placed_days.day_utc, placed_days.drive_hours, placed_days.slow_hours, placed_days.slow_at, placed_days.quiet_days,
    {{ tikv_score_after(nth('histories.tikv_scores', 'placed_days.slow_day_number + 1'), 'placed_days.quiet_days') }} as tikv_score,
    {{ iaso_score_after(nth('histories.iaso_scores', 'placed_days.slow_day_number + 1'), 'placed_days.quiet_days') }} as iaso_score
from placed_days
inner join histories on placed_days.drive_id = histories.drive_id
where placed_days.slow_day_number > 0
