-- Slow drive-hours and tail hours of each ISO week (UTC). Grain: week_utc, kind.
with drive_weeks as (
    select
        date_trunc('week', hour_utc) as week_utc,
        kind,
        count(*) as reported_drive_hours,
        count(slowdown) as drive_hours,
        count(case when is_slow then 1 end) as slow_drive_hours,
        count(distinct drive_id) as drive_count,
        count(distinct case when is_slow then drive_id end) as slow_drive_count
    from {{ ref('fct_drive_hours') }}
    group by date_trunc('week', hour_utc), kind
),

raid_weeks as (
    select
        date_trunc('week', hour_utc) as week_utc,
        kind,
        count(*) as raid_hours,
        count(case when is_tail_hour then 1 end) as tail_hours,
        count(distinct raid_group_id) as raid_group_count,
        count(distinct case when is_tail_hour then raid_group_id end) as tail_raid_group_count
    from {{ ref('fct_raid_hours') }}
    group by date_trunc('week', hour_utc), kind
),

weeks as (
    select week_utc, kind from drive_weeks
    union
    select week_utc, kind from raid_weeks
)

select
    weeks.week_utc,
    weeks.kind,
    coalesce(drive_weeks.reported_drive_hours, 0) as reported_drive_hours,
    coalesce(drive_weeks.drive_hours, 0) as drive_hours,
    coalesce(drive_weeks.slow_drive_hours, 0) as slow_drive_hours,
    cast(drive_weeks.slow_drive_hours as double) / nullif(drive_weeks.drive_hours, 0) as slow_drive_hour_ratio,
    coalesce(drive_weeks.drive_count, 0) as drive_count,
    coalesce(drive_weeks.slow_drive_count, 0) as slow_drive_count,
    coalesce(raid_weeks.raid_hours, 0) as raid_hours,
    coalesce(raid_weeks.tail_hours, 0) as tail_hours,
    cast(raid_weeks.tail_hours as double) / nullif(raid_weeks.raid_hours, 0) as tail_hour_ratio,
    coalesce(raid_weeks.raid_group_count, 0) as raid_group_count,
    coalesce(raid_weeks.tail_raid_group_count, 0) as tail_raid_group_count
from weeks
left join drive_weeks on weeks.week_utc = drive_weeks.week_utc and weeks.kind = drive_weeks.kind
left join raid_weeks on weeks.week_utc = raid_weeks.week_utc and weeks.kind = raid_weeks.kind
where {{ is_whole_week('weeks.week_utc') }}
