{{ config(meta={'made': 'each_build'}) }}
-- Whether a drive was chronic when a day of its RAID group was over, by its hours of evidence. Grain: drive_id, day_utc.
-- a drive that is a little slow for good shows on some day; of the others the counts of their days are not read
with suspects as (
    select distinct drive_id
    from {{ ref('int_drive_days') }}
    where 2 * judged_hours_{{ edge_name(var('chronic_slowdown')) }} > judged_hours
),

suspect_days as (
    select
        days.drive_id, days.day_utc,
        days.judged_hours as drive_hours,
        days.judged_hours_{{ edge_name(var('chronic_slowdown')) }} as chronic_hours,
        days.judged_hours_{{ edge_name(var('chronic_clear_slowdown')) }} as doubtful_hours,
        0 as raid_hours,
        days.max_late_latency_us
    from {{ ref('int_drive_days') }} as days
    inner join suspects on days.drive_id = suspects.drive_id
    union all
    -- its RAID group's days say what could have been seen of it
    select
        suspects.drive_id,
        group_days.day_utc,
        0 as drive_hours,
        0 as chronic_hours,
        0 as doubtful_hours,
        group_days.raid_hours,
        cast(null as double) as max_late_latency_us
    from suspects
    inner join {{ ref('int_drives') }} as drives on suspects.drive_id = drives.drive_id
    inner join {{ ref('int_raid_group_days') }} as group_days on drives.current_raid_group_id = group_days.raid_group_id
),

daily_counts as (
    select
        drive_id, day_utc,
        sum(drive_hours) as drive_hours,
        sum(chronic_hours) as chronic_hours,
        sum(doubtful_hours) as doubtful_hours,
        sum(raid_hours) as raid_hours,
        max(max_late_latency_us) as max_late_latency_us
    from suspect_days
    group by drive_id, day_utc
),

windows as (
    select
        drive_id,
        cast(day_utc as timestamp) as day_utc,
        raid_hours,
        max(max_late_latency_us) over (
            partition by drive_id order by day_utc
            range between interval {{ var('chronic_window_days') - 1 }} day preceding and current row
        ) as window_max_latency_us,
{%- for hours in ('drive_hours', 'chronic_hours', 'doubtful_hours', 'raid_hours') %}
        sum({{ hours }}) over (
            partition by drive_id order by day_utc
            range between interval {{ var('chronic_window_days') - 1 }} day preceding and current row
        ) as window_{{ hours }}{{ "," if not loop.last }}
{%- endfor %}
    from daily_counts
)

-- more than half of its hours, in at least half of the RAID group's: is_chronic of fct_drive_slowness as it was when the day was over.
-- Between the bounds nothing changes
select
    windows.drive_id, windows.day_utc,
    drives.current_raid_group_id as raid_group_id,
    cast(windows.window_drive_hours as bigint) as window_drive_hours,
    cast(windows.window_chronic_hours as bigint) as window_chronic_hours,
    cast(windows.window_raid_hours as bigint) as window_raid_hours,
    windows.window_max_latency_us,
    2 * windows.window_drive_hours >= windows.window_raid_hours
    and 2 * windows.window_chronic_hours > windows.window_drive_hours as is_chronic,
    2 * windows.window_drive_hours < windows.window_raid_hours
    or 2 * windows.window_doubtful_hours <= windows.window_drive_hours as is_well
from windows
inner join {{ ref('int_drives') }} as drives on windows.drive_id = drives.drive_id
inner join {{ ref('int_raid_groups') }} as raid_groups on drives.current_raid_group_id = raid_groups.raid_group_id
where windows.raid_hours > 0
    and windows.day_utc + interval 23 hour <= raid_groups.last_hour_utc
