{{ config(meta={'made': 'each_build'}) }}
-- Runs of consecutive slow hours of one drive in one RAID group, and of mildly slow ones. Grain: drive_id, threshold, started_at.
with degrees as (
    select 'slow' as degree
    union all
    select 'mild' as degree
),

-- one window, so that DuckDB sorts once. A drive has one row per hour: if its RAID group's next hour is there, it is the drive's next row
drive_hours as (
    select
        *,
        -- the store holds the hour after every mildly slow one, so a missing successor means it had no slowdown
        lead(hour_utc) over (partition by drive_id order by hour_utc) as next_hour_utc,
        lead(raid_group_id) over (partition by drive_id order by hour_utc) as next_raid_group_id,
{%- for degree in ('slow', 'mild') %}
        sum(case when is_{{ degree }} and not coalesce(was_{{ degree }}, false) then 1 else 0 end) over (
            partition by drive_id order by hour_utc rows between unbounded preceding and current row
        ) as {{ degree }}_number{{ "," if not loop.last }}
{%- endfor %}
    from {{ ref('int_drive_hours__slow') }}
),

slow_hours as (
    select
        drive_hours.drive_id, drive_hours.raid_group_id, drive_hours.hour_utc, drive_hours.slowdown, drive_hours.is_slow,
        degrees.degree,
        case degrees.degree when 'slow' then drive_hours.slow_at else drive_hours.mild_at end as threshold,
        case degrees.degree when 'slow' then drive_hours.was_slow else drive_hours.was_mild end as was_slow,
        case degrees.degree when 'slow' then drive_hours.slow_number else drive_hours.mild_number end as interval_number,
        coalesce(
            drive_hours.next_raid_group_id = drive_hours.raid_group_id
            and drive_hours.next_hour_utc = drive_hours.hour_utc + interval 1 hour,
            false
        ) as is_followed
    from drive_hours
    cross join degrees
    where case degrees.degree when 'slow' then drive_hours.is_slow else drive_hours.is_mild end
),

intervals as (
    select
        drive_id, degree,
        min(threshold) as threshold,
        min(raid_group_id) as raid_group_id,
        min(hour_utc) as started_at,
        max(hour_utc) as ended_at,
        count(*) as interval_hours,
        min_by(slowdown, hour_utc) as first_slowdown,
        max(slowdown) as max_slowdown,
        max(case when is_slow then 1 else 0 end) = 1 as is_ever_slow,
        {{ mean_of_group('slowdown') }} as mean_slowdown,
        max(case when was_slow is null then 1 else 0 end) = 1 as is_left_censored,
        max_by(is_followed, hour_utc) = false as is_right_censored
    from slow_hours
    group by drive_id, degree, interval_number
),

unplugs as (
    select
        intervals.drive_id, intervals.degree, intervals.started_at,
        min(events.occurred_at) as unplugged_at
    from intervals
    inner join {{ ref('int_drive_events__identified') }} as events
        on intervals.drive_id = events.drive_id and intervals.started_at <= events.hour_utc
    where events.event_type = 'unplug'
    group by intervals.drive_id, intervals.degree, intervals.started_at
)

select
    intervals.drive_id, intervals.threshold, intervals.degree, intervals.started_at, intervals.raid_group_id,
    drives.kind,
    intervals.ended_at, intervals.interval_hours,
    intervals.interval_hours + 1 as hours_until_stable,
    intervals.first_slowdown, intervals.max_slowdown, intervals.mean_slowdown, intervals.is_left_censored, intervals.is_right_censored,
    case
        when intervals.degree = 'slow' then {{ severity('intervals.first_slowdown') }}
        -- an interval that reaches the slow threshold counts among the slow ones, not here again
        when not intervals.is_ever_slow then '1.5-2x'
    end as severity,
    unplugs.unplugged_at,
    {{ hour_index('unplugs.unplugged_at') }} - {{ hour_index('intervals.started_at') }} as wait_hours
from intervals
left join unplugs
    on intervals.drive_id = unplugs.drive_id
    and intervals.degree = unplugs.degree
    and intervals.started_at = unplugs.started_at
inner join {{ ref('int_drives') }} as drives on intervals.drive_id = drives.drive_id
