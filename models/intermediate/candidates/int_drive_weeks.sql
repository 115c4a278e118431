{#- The share of a week's weight that is lost within 1, 2, ... weeks. Literals: power() of two engines may differ in its last bit, and
    candidate_evidence shows the rate rounded down to tenths. -#}
{%- set candidate_history_weeks = 26 %}{#- weeks of a drive's past that its own rate is made of -#}
{%- set lost_shares = [] %}
{%- for weeks in range(1, candidate_history_weeks + 1) %}
    {%- do lost_shares.append('%.16e' | format(1 - 0.5 ** (weeks / var('candidate_half_life_weeks')))) %}
{%- endfor %}
-- What was known of each drive when an ISO week (UTC) was over, of drives with a slowdown in it; nothing at or after the boundary is looked at.
-- Grain: drive_id, boundary_utc.
with known as (
    select last_hour_utc + interval 1 hour as until_utc from {{ ref('stg_raw__publication') }}
),

-- a week is known by the number of the week after it, which begins at its boundary
drive_weeks as (
    select
        drive_id,
        boundary_utc,
        {{ week_no('boundary_utc') }} as week_no,
        max_by(raid_group_id, place) as raid_group_id,
        cast(sum(slowdown_hours) as bigint) as drive_hours,
        cast(sum(chronic_hours) as bigint) as chronic_hours
    from (
        select
            drive_id,
            raid_group_id,
            cast(day_utc as string) || ' ' || raid_group_id as place,
            cast(date_trunc('week', cast(day_utc as timestamp)) as timestamp) + interval 7 day as boundary_utc,
            slowdown_hours,
            slowdown_hours_{{ edge_name(var('chronic_slowdown')) }} as chronic_hours
        from {{ ref('int_drive_days') }}
        where slowdown_hours > 0
    ) as days
    group by drive_id, boundary_utc
),

slow_hours as (
    select
        drive_id,
        raid_group_id,
        hour_utc,
        slowdown,
        cast(date_trunc('week', hour_utc) as timestamp) + interval 7 day as boundary_utc,
        {{ hour_index('hour_utc') }}
        - {{ hour_index('lag(hour_utc) over (partition by drive_id order by hour_utc)') }} as hours_since_last
    from {{ ref('int_drive_hours__slow') }}
    where is_slow
),

places as (
    select drive_id, hour_utc, 'raid group' as place_type, raid_group_id as place_id
    from slow_hours
    union all
    select
        slow_hours.drive_id,
        slow_hours.hour_utc,
        case when described.host is not null then 'host' else 'enclosure' end as place_type,
        -- an enclosure's name need not be unique beyond its host; which hosts share one is known only later
        coalesce(described.host, described.site || '/' || described.enclosure, described.enclosure) as place_id
    from slow_hours
    inner join {{ ref('int_drives__described') }} as described
        on slow_hours.drive_id = described.drive_id
        and slow_hours.hour_utc >= described.from_hour_utc
        and slow_hours.hour_utc < described.to_hour_utc
    where coalesce(described.host, described.enclosure) is not null
),

crowded as (
    select place_type, place_id, hour_utc
    from places
    group by place_type, place_id, hour_utc
    having count(*) >= {{ var('together_drives') }}
),

together as (
    select distinct places.drive_id, places.hour_utc
    from places
    inner join crowded
        on places.place_type = crowded.place_type and places.place_id = crowded.place_id and places.hour_utc = crowded.hour_utc
),

slow_weeks as (
    select
        slow_hours.drive_id,
        slow_hours.boundary_utc,
        count(*) as slow_hours,
        -- slow again within a day, after an hour at least that was not
        count(case when slow_hours.hours_since_last between 2 and 24 then 1 end) as recurrence_count,
        count(together.hour_utc) as together_hours,
        max(case when slow_hours.hour_utc >= slow_hours.boundary_utc - interval 24 hour then slow_hours.slowdown end) as last_day_max_slowdown
    from slow_hours
    left join together on slow_hours.drive_id = together.drive_id and slow_hours.hour_utc = together.hour_utc
    group by slow_hours.drive_id, slow_hours.boundary_utc
),

tail_weeks as (
{{- weekly_tail_hours_caused() -}}
),

weekly as (
    select
        drive_weeks.*,
        coalesce(slow_weeks.slow_hours, 0) as slow_hours,
        coalesce(slow_weeks.recurrence_count, 0) as recurrence_count,
        coalesce(slow_weeks.together_hours, 0) as together_hours,
        slow_weeks.last_day_max_slowdown,
        coalesce(tail_weeks.tail_hours_caused, 0) as tail_hours_caused,
        tail_weeks.last_tail_hour_utc
    from drive_weeks
    cross join known
    left join slow_weeks on drive_weeks.drive_id = slow_weeks.drive_id and drive_weeks.boundary_utc = slow_weeks.boundary_utc
    left join tail_weeks
        on drive_weeks.drive_id = tail_weeks.drive_id
        and drive_weeks.week_no = tail_weeks.week_no + 1
    where drive_weeks.boundary_utc <= known.until_utc
),

-- a drive's own rate: recent weeks weigh more. Weights are whole millionths, so that the order of summing leaves no trace
weighted as (
    select
        drive_weeks.drive_id,
        drive_weeks.week_no,
        cast(
            sum(
                past.tail_hours_caused
                * cast(round(1000000 * power(0.5, (drive_weeks.week_no - past.week_no - 1) / cast({{ var('candidate_half_life_weeks') }} as double))) as bigint)
            ) as bigint
        ) as weighted_tail_hours
    from drive_weeks
    inner join tail_weeks as past
        on drive_weeks.drive_id = past.drive_id
        and past.week_no between drive_weeks.week_no - {{ candidate_history_weeks }} and drive_weeks.week_no - 1
    group by drive_weeks.drive_id, drive_weeks.week_no
),

unplugs as (
    select
        drive_weeks.drive_id,
        drive_weeks.week_no,
        count(case when events.event_type = 'unplug' then 1 end) as unplug_count,
        max(case when events.event_type = 'unplug' then events.hour_utc end) as last_unplug_hour_utc,
        max(case when events.event_type = 'replug' then events.hour_utc end) as last_replug_hour_utc
    from drive_weeks
    inner join {{ ref('int_drive_events__identified') }} as events
        on drive_weeks.drive_id = events.drive_id and events.occurred_at < drive_weeks.boundary_utc
    where events.event_type in ('unplug', 'replug')
    group by drive_weeks.drive_id, drive_weeks.week_no
),

-- when the slow interval began that an unplug ended or followed
waits as (
    select pulls.drive_id, pulls.last_unplug_hour_utc, max(slow_hours.hour_utc) as slow_from_utc
    from (select distinct drive_id, last_unplug_hour_utc from unplugs) as pulls
    inner join slow_hours on pulls.drive_id = slow_hours.drive_id and slow_hours.hour_utc <= pulls.last_unplug_hour_utc
    where coalesce(slow_hours.hours_since_last, 0) <> 1
    group by pulls.drive_id, pulls.last_unplug_hour_utc
),

-- when a drive was slow after it came back: by no boundary before that hour is it known
recurrences as (
    select returns.drive_id, returns.last_replug_hour_utc, min(slow_hours.hour_utc) as recurred_at
    from (select distinct drive_id, last_replug_hour_utc from unplugs) as returns
    inner join slow_hours on returns.drive_id = slow_hours.drive_id and slow_hours.hour_utc >= returns.last_replug_hour_utc
    group by returns.drive_id, returns.last_replug_hour_utc
),

windows as (
    select
        *,
{%- for hours in ('drive_hours', 'chronic_hours', 'slow_hours', 'recurrence_count', 'together_hours', 'tail_hours_caused') %}
        cast(
            sum({{ hours }}) over (partition by drive_id order by week_no range between 3 preceding and current row) as bigint
        ) as {{ hours }}_28d,
{%- endfor %}
        count(case when tail_hours_caused > 0 then 1 end) over (
            partition by drive_id order by week_no range between 3 preceding and current row
        ) as tail_weeks_28d,
        max(last_tail_hour_utc) over (
            partition by drive_id order by week_no range between unbounded preceding and current row
        ) as latest_tail_hour_utc,
        least(
            week_no - min(week_no) over (partition by drive_id) + 1, {{ candidate_history_weeks }}
        ) as weeks_seen
    from weekly
)

select
    windows.drive_id,
    windows.boundary_utc,
    windows.week_no,
    coalesce(described.kind, drives.declared_kind, 'unknown') as kind,
    windows.raid_group_id,
    described.model,
    {{ age_year('described.deployed_on', 'windows.boundary_utc') }} as age_year,
    windows.drive_hours_28d,
    windows.chronic_hours_28d,
    windows.slow_hours_28d,
    windows.last_day_max_slowdown,
    windows.recurrence_count_28d,
    windows.together_hours_28d,
    windows.tail_hours_caused_28d,
    windows.tail_weeks_28d,
    windows.latest_tail_hour_utc,
    coalesce(unplugs.unplug_count, 0) as unplug_count,
    {{ hour_index('unplugs.last_unplug_hour_utc') }} - {{ hour_index('waits.slow_from_utc') }} as wait_hours,
    unplugs.last_replug_hour_utc is not null as is_replugged,
    case
        when recurrences.recurred_at < windows.boundary_utc
            then {{ hour_index('recurrences.recurred_at') }} - {{ hour_index('unplugs.last_replug_hour_utc') }}
    end as recur_hours,
    windows.weeks_seen,
    -- of the weeks it was seen in, each at its weight; four of them make 28 days
    4.0 * coalesce(weighted.weighted_tail_hours, 0) / 1000000.0
    * {{ lost_shares[0] }}
    / case windows.weeks_seen{% for share in lost_shares %} when {{ loop.index }} then {{ share }}{% endfor %} end as own_tail_hours
from windows
left join weighted on windows.drive_id = weighted.drive_id and windows.week_no = weighted.week_no
left join unplugs on windows.drive_id = unplugs.drive_id and windows.week_no = unplugs.week_no
left join waits on unplugs.drive_id = waits.drive_id and unplugs.last_unplug_hour_utc = waits.last_unplug_hour_utc
left join recurrences on unplugs.drive_id = recurrences.drive_id and unplugs.last_replug_hour_utc = recurrences.last_replug_hour_utc
-- as inventory stood in the last hour before the boundary
left join {{ ref('int_drives__described') }} as described
    on windows.drive_id = described.drive_id
    and windows.boundary_utc > described.from_hour_utc
    and windows.boundary_utc <= described.to_hour_utc
left join {{ ref('int_drives') }} as drives on windows.drive_id = drives.drive_id
