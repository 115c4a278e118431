-- Evidence on each drive that was slow in an ISO week (UTC), so that an operator can decide on it. Grain: week_utc, drive_id.
with drive_weeks as (
    select
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        drive_id,
        count(*) as slow_hours,
        {{ median_of_group('rate_imbalance') }} as median_rate_imbalance,
        {{ median_of_group('size_imbalance') }} as median_size_imbalance
    from {{ ref('int_drive_hours__slow') }}
    where is_slow
    group by cast(date_trunc('week', hour_utc) as timestamp), drive_id
),

-- the intervals that reach into the week, with all their hours
intervals as (
    select
        drive_weeks.week_utc, drive_weeks.drive_id,
        causes.started_at, causes.interval_hours, causes.cause, causes.evidence,
        row_number() over (
            partition by drive_weeks.week_utc, drive_weeks.drive_id order by causes.interval_hours desc, causes.started_at asc
        ) as length_rank
    from drive_weeks
    inner join {{ ref('fct_interval_causes') }} as causes
        on drive_weeks.drive_id = causes.drive_id
        and causes.started_at < drive_weeks.week_utc + interval 7 day
        and {{ hour_index('causes.started_at') }} + causes.interval_hours > {{ hour_index('drive_weeks.week_utc') }}
),

cause_hours as (
    select week_utc, drive_id, cause, cast(sum(interval_hours) as bigint) as cause_hours
    from intervals
    group by week_utc, drive_id, cause
),

causes as (
    select
        cause_hours.week_utc, cause_hours.drive_id, cause_hours.cause, cause_hours.cause_hours,
        rules.action, rules.next_step,
        row_number() over (
            partition by cause_hours.week_utc, cause_hours.drive_id order by cause_hours.cause_hours desc, rules.cause_rank asc
        ) as cause_rank
    from cause_hours
    inner join {{ ref('cause_rules') }} as rules on cause_hours.cause = rules.cause
),

explained_intervals as (
    select week_utc, drive_id, cause, evidence, row_number() over (partition by week_utc, drive_id, cause order by length_rank) as evidence_rank
    from intervals
),

flags as (
    select
        cast(date_trunc('week', cast(day_utc as timestamp)) as timestamp) as week_utc,
        drive_id,
        count(distinct detector) as flagging_detector_count
    from {{ ref('fct_detector_verdicts') }}
    where is_flagged
    group by cast(date_trunc('week', cast(day_utc as timestamp)) as timestamp), drive_id
),

sampled_days as (
    select distinct cast(date_trunc('week', cast(day_utc as timestamp)) as timestamp) as week_utc, drive_id
    from {{ ref('int_sampled_days') }}
),

events as (
    select
        drive_weeks.week_utc, drive_weeks.drive_id,
        events.event_type, events.occurred_at,
        row_number() over (
            partition by drive_weeks.week_utc, drive_weeks.drive_id order by events.occurred_at desc, events.event_type asc
        ) as event_rank
    from drive_weeks
    inner join {{ ref('fct_drive_events') }} as events
        on drive_weeks.drive_id = events.drive_id and events.occurred_at < drive_weeks.week_utc + interval 7 day
)

select
    drive_weeks.week_utc, drive_weeks.drive_id,
    drives.slot, drives.host, drives.model, drives.firmware,
    drive_weeks.slow_hours,
    intervals.interval_hours as longest_interval_hours,
    intervals.started_at as longest_interval_started_at,
    drive_weeks.median_rate_imbalance, drive_weeks.median_size_imbalance,
    causes.cause, causes.cause_hours,
    explained_intervals.evidence,
    coalesce(flags.flagging_detector_count, 0) as flagging_detector_count,
    cast(
        {{ var('detectors') | reject('in', var('sample_detectors')) | list | length }}
        + case when sampled_days.drive_id is not null then {{ var('detectors') | select('in', var('sample_detectors')) | list | length }} else 0 end
        as bigint
    ) as detector_count,
    events.event_type as last_event_type,
    events.occurred_at as last_event_at,
    causes.action, causes.next_step
from drive_weeks
left join {{ ref('dim_drives') }} as drives on drive_weeks.drive_id = drives.drive_id
left join intervals on drive_weeks.week_utc = intervals.week_utc and drive_weeks.drive_id = intervals.drive_id and intervals.length_rank = 1
left join causes on drive_weeks.week_utc = causes.week_utc and drive_weeks.drive_id = causes.drive_id and causes.cause_rank = 1
left join explained_intervals
    on causes.week_utc = explained_intervals.week_utc
    and causes.drive_id = explained_intervals.drive_id
    and causes.cause = explained_intervals.cause
    and explained_intervals.evidence_rank = 1
left join flags on drive_weeks.week_utc = flags.week_utc and drive_weeks.drive_id = flags.drive_id
left join sampled_days on drive_weeks.week_utc = sampled_days.week_utc and drive_weeks.drive_id = sampled_days.drive_id
left join events on drive_weeks.week_utc = events.week_utc and drive_weeks.drive_id = events.drive_id and events.event_rank = 1
