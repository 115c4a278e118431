{{ config(meta={'by_week': {'column': 'week_utc'}}) }}
-- Cost of each slow drive in an ISO week (UTC). Drives without a slow hour or a tail hour that week have no row.
-- Grain: week_utc, drive_id.
-- one drive in a hundred: the medians of the others are not taken
with slow_weeks as (
    select distinct week_utc, drive_id
    from {{ ref('int_drive_days__outcomes') }}
    where slow_hours > 0 and {{ is_whole_week('week_utc') }}
),

drive_weeks as (
    select
        slow_weeks.week_utc, slow_weeks.drive_id,
        hours.kind,
        max_by(hours.raid_group_id, hours.hour_utc) as raid_group_id,
        count(hours.slowdown) as drive_hours,
        count(case when hours.is_slow then 1 end) as slow_hours,
        max(hours.slowdown) as max_slowdown,
        {{ median_of_group('hours.slowdown') }} as median_slowdown,
        max(hours.age_year) as age_year
    from {{ ref('fct_drive_hours') }} as hours
    inner join slow_weeks
        on hours.drive_id = slow_weeks.drive_id and cast(date_trunc('week', hours.hour_utc) as timestamp) = slow_weeks.week_utc
    group by slow_weeks.week_utc, slow_weeks.drive_id, hours.kind
),

tails as (
    select
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        slowest_drive_id as drive_id,
        count(*) as tail_hours
    from {{ ref('fct_raid_hours') }}
    where is_tail_hour
    group by cast(date_trunc('week', hour_utc) as timestamp), slowest_drive_id
),

ranked as (
    select
        drive_weeks.*,
        coalesce(tails.tail_hours, 0) as tail_hours,
        cast(row_number() over (
            partition by drive_weeks.week_utc
            order by coalesce(tails.tail_hours, 0) desc, drive_weeks.slow_hours desc, drive_weeks.max_slowdown desc, drive_weeks.drive_id asc
        ) as bigint) as cost_rank
    from drive_weeks
    left join tails on drive_weeks.week_utc = tails.week_utc and drive_weeks.drive_id = tails.drive_id
),

cumulated as (
    select
        *,
        -- each tail hour has one slowest drive, so these add up to all of the fleet's
        sum(tail_hours) over (partition by week_utc) as fleet_tail_hours,
        sum(tail_hours) over (
            partition by week_utc order by cost_rank rows between unbounded preceding and current row
        ) as cumulative_tail_hours
    from ranked
)

select
    week_utc, drive_id, kind, raid_group_id, drive_hours, slow_hours, tail_hours, max_slowdown, median_slowdown, cost_rank, age_year,
    cast(tail_hours as double) / nullif(fleet_tail_hours, 0) as tail_hour_share,
    cast(cumulative_tail_hours as bigint) as cumulative_tail_hours,
    cast(cumulative_tail_hours as double) / nullif(fleet_tail_hours, 0) as cumulative_tail_hour_share
from cumulated
