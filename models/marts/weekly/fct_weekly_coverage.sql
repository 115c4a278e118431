-- Drive-hours of an ISO week (UTC) that should have come, that came, and that could be measured. Grain: week_utc, kind.
-- Expected of a RAID-hour that has a row: its width. Of one that has none: what inventory names, from the fleet's first hour to its last.
with raid_hours as (
    select
        raid_hours.raid_group_id, raid_hours.hour_utc, raid_hours.is_valid,
        case when raid_hours.data_drive_count >= {{ var('min_group_width') }} then raid_hours.data_drive_count end as data_drive_count,
        case when steps.expected_drive_count >= {{ var('min_group_width') }} then steps.expected_drive_count end as expected_drive_count
    from {{ ref('int_raid_hours') }} as raid_hours
    left join {{ ref('int_raid_groups__width_steps') }} as steps
        on raid_hours.raid_group_id = steps.raid_group_id
        and steps.from_hour_utc <= raid_hours.hour_utc
        and steps.to_hour_utc > raid_hours.hour_utc
),

seen_hours as (
    select
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        raid_group_id,
        count(data_drive_count) as seen_raid_hours,
        count(case when is_valid then 1 end) as raid_hours,
        sum(data_drive_count) as seen_drive_hours,
        count(expected_drive_count) as listed_raid_hours,
        sum(expected_drive_count) as listed_drive_hours
    from raid_hours
    group by cast(date_trunc('week', hour_utc) as timestamp), raid_group_id
),

weeks as (
    select distinct week_utc from seen_hours
),

fleet as (
    select min(hour_utc) as first_hour_utc, max(hour_utc) as last_hour_utc from {{ ref('int_raid_hours') }}
),

stretches as (
    select
        weeks.week_utc,
        steps.raid_group_id, steps.expected_drive_count,
        greatest(weeks.week_utc, fleet.first_hour_utc, steps.from_hour_utc) as from_hour_utc,
        least(weeks.week_utc + interval 168 hour, fleet.last_hour_utc + interval 1 hour, steps.to_hour_utc) as to_hour_utc
    from {{ ref('int_raid_groups__width_steps') }} as steps
    cross join weeks
    cross join fleet
    where steps.expected_drive_count >= {{ var('min_group_width') }}
        and steps.from_hour_utc < weeks.week_utc + interval 168 hour
        and steps.to_hour_utc > weeks.week_utc
),

listed_weeks as (
    select
        week_utc, raid_group_id,
        sum({{ hour_index('to_hour_utc') }} - {{ hour_index('from_hour_utc') }}) as raid_hours,
        sum(expected_drive_count * ({{ hour_index('to_hour_utc') }} - {{ hour_index('from_hour_utc') }})) as drive_hours
    from stretches
    where from_hour_utc < to_hour_utc
    group by week_utc, raid_group_id
),

reported_weeks as (
    select
        week_utc, raid_group_id,
        sum(reported_hours) as reported_drive_hours,
        sum(slowdown_hours) as drive_hours
    from {{ ref('int_drive_days__outcomes') }}
    group by week_utc, raid_group_id
),

group_weeks as (
    select week_utc, raid_group_id from seen_hours
    union
    select week_utc, raid_group_id from listed_weeks
),

totals as (
    select
        group_weeks.week_utc,
        coalesce(raid_groups.kind, 'unknown') as kind,
        sum(
            coalesce(seen_hours.seen_drive_hours, 0)
            + greatest(coalesce(listed_weeks.drive_hours, 0) - coalesce(seen_hours.listed_drive_hours, 0), 0)
        ) as expected_drive_hours,
        sum(coalesce(reported_weeks.reported_drive_hours, 0)) as reported_drive_hours,
        sum(coalesce(reported_weeks.drive_hours, 0)) as drive_hours,
        sum(coalesce(seen_hours.seen_raid_hours, 0)) as seen_raid_hours,
        sum(greatest(coalesce(listed_weeks.raid_hours, 0) - coalesce(seen_hours.listed_raid_hours, 0), 0)) as silent_raid_hours,
        sum(coalesce(seen_hours.raid_hours, 0)) as raid_hours
    from group_weeks
    left join seen_hours on group_weeks.week_utc = seen_hours.week_utc and group_weeks.raid_group_id = seen_hours.raid_group_id
    left join listed_weeks on group_weeks.week_utc = listed_weeks.week_utc and group_weeks.raid_group_id = listed_weeks.raid_group_id
    left join reported_weeks on group_weeks.week_utc = reported_weeks.week_utc and group_weeks.raid_group_id = reported_weeks.raid_group_id
    left join {{ ref('int_raid_groups__kinds') }} as raid_groups on group_weeks.raid_group_id = raid_groups.raid_group_id
    group by group_weeks.week_utc, coalesce(raid_groups.kind, 'unknown')
)

select
    week_utc, kind,
    cast(expected_drive_hours as bigint) as expected_drive_hours,
    cast(reported_drive_hours as bigint) as reported_drive_hours,
    cast(reported_drive_hours as double) / cast(expected_drive_hours as double) as reported_ratio,
    cast(drive_hours as bigint) as drive_hours,
    cast(drive_hours as double) / cast(expected_drive_hours as double) as measured_ratio,
    cast(seen_raid_hours + silent_raid_hours as bigint) as expected_raid_hours,
    cast(raid_hours as bigint) as raid_hours,
    cast(silent_raid_hours as bigint) as silent_raid_hours
from totals
where expected_drive_hours > 0 and {{ is_whole_week('week_utc') }}
