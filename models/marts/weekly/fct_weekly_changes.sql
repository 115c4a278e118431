-- How slow each ISO week (UTC) was beside the weeks just before it, taken together. Grain: week_utc, kind.
with weeks as (
    select week_utc, kind, slow_drive_hours, drive_hours, tail_hours, raid_hours from {{ ref('fct_weekly_slowness') }}
),

baselines as (
    select
        weeks.week_utc,
        weeks.kind,
        count(earlier.week_utc) as baseline_week_count,
        cast(sum(earlier.slow_drive_hours) as bigint) as baseline_slow_drive_hours,
        cast(sum(earlier.drive_hours) as bigint) as baseline_drive_hours,
        cast(sum(earlier.tail_hours) as bigint) as baseline_tail_hours,
        cast(sum(earlier.raid_hours) as bigint) as baseline_raid_hours
    from weeks
    left join weeks as earlier
        on weeks.kind = earlier.kind
        and earlier.week_utc < weeks.week_utc
        and earlier.week_utc >= weeks.week_utc - interval {{ var('chronic_window_days') }} day
    group by weeks.week_utc, weeks.kind
),

rated as (
    select
        baselines.*,
        cast(baselines.baseline_slow_drive_hours as double) / nullif(baselines.baseline_drive_hours, 0)
            as baseline_slow_drive_hour_ratio,
        cast(baselines.baseline_tail_hours as double) / nullif(baselines.baseline_raid_hours, 0) as baseline_tail_hour_ratio,
        cast(weeks.slow_drive_hours as double) / nullif(weeks.drive_hours, 0) as slow_drive_hour_ratio,
        cast(weeks.tail_hours as double) / nullif(weeks.raid_hours, 0) as tail_hour_ratio
    from baselines
    inner join weeks on baselines.week_utc = weeks.week_utc and baselines.kind = weeks.kind
)

select
    week_utc,
    kind,
    baseline_week_count,
    coalesce(baseline_slow_drive_hours, 0) as baseline_slow_drive_hours,
    coalesce(baseline_drive_hours, 0) as baseline_drive_hours,
    baseline_slow_drive_hour_ratio,
    slow_drive_hour_ratio / nullif(baseline_slow_drive_hour_ratio, 0.0) as slow_drive_hour_change,
    coalesce(baseline_tail_hours, 0) as baseline_tail_hours,
    coalesce(baseline_raid_hours, 0) as baseline_raid_hours,
    baseline_tail_hour_ratio,
    tail_hour_ratio / nullif(baseline_tail_hour_ratio, 0.0) as tail_hour_change
from rated
