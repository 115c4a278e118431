{{ config(meta={'by_week': {'column': 'week_utc'}}) }}
-- Cost of each slow drive in an ISO week (UTC), of hours that are evidence. Drives without such a slow hour that week have no row.
-- Grain: week_utc, drive_id.
with slow_weeks as (
    select
        cast(date_trunc('week', slow.hour_utc) as timestamp) as week_utc,
        slow.drive_id,
        count(*) as slow_hours,
        count(case when raid_hours.is_tail_hour then 1 end) as tail_hours,
        max(slow.slowdown) as max_slowdown
    from {{ ref('int_drive_hours__evidence') }} as slow
    left join {{ ref('fct_raid_hours') }} as raid_hours
        on slow.raid_group_id = raid_hours.raid_group_id and slow.hour_utc = raid_hours.hour_utc and slow.drive_id = raid_hours.slowest_drive_id
    where {{ is_whole_week("cast(date_trunc('week', slow.hour_utc) as timestamp)") }}
    group by cast(date_trunc('week', slow.hour_utc) as timestamp), slow.drive_id
),

-- one drive in a hundred: the medians of the others are not taken
drive_weeks as (
    select
        slow_weeks.week_utc, slow_weeks.drive_id, slow_weeks.slow_hours, slow_weeks.tail_hours, slow_weeks.max_slowdown,
        hours.kind,
        max_by(hours.raid_group_id, hours.hour_utc) as raid_group_id,
        count(hours.slowdown) as drive_hours,
        {{ median_of_group('hours.slowdown') }} as median_slowdown,
        max(hours.age_year) as age_year
    from {{ ref('fct_drive_hours') }} as hours
    inner join slow_weeks
        on hours.drive_id = slow_weeks.drive_id and cast(date_trunc('week', hours.hour_utc) as timestamp) = slow_weeks.week_utc
    -- said twice: an engine puts a semi-join below the outer join of fct_drive_hours, and leaves an inner join above it
    where hours.drive_id in (select slow.drive_id from slow_weeks as slow)
    group by slow_weeks.week_utc, slow_weeks.drive_id, slow_weeks.slow_hours, slow_weeks.tail_hours, slow_weeks.max_slowdown, hours.kind
),

ranked_weeks as (
    select
        *,
        cast(row_number() over (partition by week_utc order by tail_hours desc, slow_hours desc, max_slowdown desc, drive_id asc) as bigint) as cost_rank
    from drive_weeks
),

cumulated_weeks as (
    select
        *,
        -- each tail hour has one slowest drive, so these add up
        sum(tail_hours) over (partition by week_utc) as fleet_tail_hours,
        sum(tail_hours) over (
            partition by week_utc order by cost_rank rows between unbounded preceding and current row
        ) as cumulative_tail_hours
    from ranked_weeks
)

select
    week_utc, drive_id, kind, raid_group_id, drive_hours, slow_hours, tail_hours, max_slowdown, median_slowdown, cost_rank, age_year,
    cast(tail_hours as double) / nullif(fleet_tail_hours, 0) as tail_hour_share,
    cast(cumulative_tail_hours as bigint) as cumulative_tail_hours,
    cast(cumulative_tail_hours as double) / nullif(fleet_tail_hours, 0) as cumulative_tail_hour_share
from cumulated_weeks
