-- What each slow drive cost in an ISO week (UTC). Drives without a slow hour or a tail hour that week have no row.
-- Grain: week_utc, drive_id.
with drive_weeks as (
    select
        date_trunc('week', hour_utc) as week_utc,
        drive_id,
        kind,
        max_by(raid_group_id, hour_utc) as raid_group_id,
        count(slowdown) as drive_hours,
        count(case when is_slow then 1 end) as slow_hours,
        max(slowdown) as max_slowdown,
        median(slowdown) as median_slowdown
    from {{ ref('fct_drive_hours') }}
    group by date_trunc('week', hour_utc), drive_id, kind
    having count(case when is_slow then 1 end) > 0
),

tails as (
    select
        date_trunc('week', hour_utc) as week_utc,
        slowest_drive_id as drive_id,
        count(*) as tail_hours
    from {{ ref('fct_raid_hours') }}
    where is_tail_hour
    group by date_trunc('week', hour_utc), slowest_drive_id
)

select
    drive_weeks.week_utc,
    drive_weeks.drive_id,
    drive_weeks.kind,
    drive_weeks.raid_group_id,
    drive_weeks.drive_hours,
    drive_weeks.slow_hours,
    coalesce(tails.tail_hours, 0) as tail_hours,
    drive_weeks.max_slowdown,
    drive_weeks.median_slowdown,
    row_number() over (
        partition by drive_weeks.week_utc
        order by coalesce(tails.tail_hours, 0) desc, drive_weeks.slow_hours desc, drive_weeks.max_slowdown desc, drive_weeks.drive_id asc
    ) as cost_rank
from drive_weeks
left join tails on drive_weeks.week_utc = tails.week_utc and drive_weeks.drive_id = tails.drive_id
