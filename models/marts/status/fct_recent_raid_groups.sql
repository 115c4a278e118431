-- RAID-hours of each RAID group in the status window, and those that are missing between them. Grain: raid_group_id.
with recent_hours as (
    select
        raid_hours.raid_group_id,
        min(raid_hours.hour_utc) as first_hour_utc,
        max(raid_hours.hour_utc) as last_hour_utc,
        count(*) as hours,
        count(case when not raid_hours.is_valid then 1 end) as hours_without_median
    from {{ ref('int_raid_hours') }} as raid_hours
    inner join {{ ref('fct_status_window') }} as status_window on raid_hours.hour_utc >= status_window.first_hour_utc
    group by raid_hours.raid_group_id
)

select
    raid_group_id, first_hour_utc, last_hour_utc, hours,
    {{ hour_index('last_hour_utc') }} - {{ hour_index('first_hour_utc') }} + 1 - hours as missing_hours,
    hours_without_median
from recent_hours
