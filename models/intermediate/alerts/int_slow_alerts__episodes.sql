{{ config(meta={'made': 'each_build'}) }}
-- Times at which a drive or RAID group became slow: runs of its slow hours with several within a day. Those that return within weeks are one alert.
-- Grain: subject_type, subject_id, run_number.
with followed_hours as (
    select
        *,
        coalesce(
            hour_utc <= lag(hour_utc) over (partition by subject_type, subject_id order by hour_utc) + interval {{ var('alert_clear_hours') }} hour, false
        ) as is_continued,
        coalesce(
            hour_utc < min(hour_utc) over ({{ first_of_rows(var('alert_slow_hours'), 'subject_type, subject_id', 'hour_utc') }})
            + interval {{ var('alert_window_hours') }} hour,
            false
        ) as is_acute
    from {{ ref('int_slow_alerts__hours') }}
    where held_back_by is null
),

numbered_hours as (
    select
        *,
        sum(case when is_continued then 0 else 1 end) over (
            partition by subject_type, subject_id order by hour_utc rows between unbounded preceding and current row
        ) as run_number
    from followed_hours
),

runs as (
    select
        subject_type, subject_id, run_number,
        min(case when is_acute then hour_utc end) as acute_at,
        -- no hour below the floor is of concern
        min(case when latency_us >= floor_us then hour_utc end) as reached_at,
        min(hour_utc) as first_slow_hour_utc,
        max(hour_utc) as last_slow_hour_utc
    from numbered_hours
    group by subject_type, subject_id, run_number
),

acute_runs as (
    select *, greatest(acute_at, coalesce(reached_at, acute_at)) as raised_at
    from runs
    where acute_at is not null
),

{{ with_returns('runs', 'acute_runs', 'subject_type, subject_id', 'run_number', 'alert_number') }}

select
    subject_type, subject_id, run_number, alert_number, episode_number, raised_at, reached_at, is_reopened, first_slow_hour_utc, last_slow_hour_utc
from ordered_runs
