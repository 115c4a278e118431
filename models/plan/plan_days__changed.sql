-- Days whose drive-hours a build computes again, because something that they are made of has changed, and from which hour on. Grain: day_utc.
with arrived_hours as (
    select day_utc, has_last_hour, from_hour_utc from {{ source('plan', 'arrived_days') }}
    union all
    -- a record that lost a conflict with one that has just arrived, which may be of another RAID group
    select
        cast(hour_utc as date) as day_utc,
        cast(hour_utc + interval 1 hour as date) > cast(hour_utc as date) as has_last_hour,
        hour_utc as from_hour_utc
    from {{ source('raw', 'retired_drive_hours') }}
    where retired_by_delivery_seq in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
    union all
    select cast(from_utc as date) as day_utc, false as has_last_hour, cast(null as timestamp) as from_hour_utc
    from {{ source('raw', 'retired_drive_samples') }}
    where retired_by_delivery_seq in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
),

-- a drive that inventory places elsewhere changes the groups it was in and those it is in now
moved_days as (
    select days.day_utc, true as has_last_hour
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('plan_places__changed') }} as places
        on days.drive_id = places.drive_id
        and places.from_hour_utc <= days.last_hour_utc
        and places.to_hour_utc > days.first_hour_utc
    union all
    select days.day_utc, true as has_last_hour
    from {{ ref('int_raid_group_days') }} as days
    inner join {{ ref('plan_places__changed') }} as places
        on days.raid_group_id = places.raid_group_id
        and places.from_hour_utc < cast(days.day_utc as timestamp) + interval 1 day
        and places.to_hour_utc > cast(days.day_utc as timestamp)
    union all
    -- hours that were nobody's, as their name may have passed meanwhile
    select days.day_utc, true as has_last_hour
    from {{ ref('int_drive_days__merged') }} as days
    inner join {{ ref('plan_places__changed') }} as places
        on days.drive_id = places.drive_id
        and places.from_hour_utc < cast(days.day_utc as timestamp) + interval 1 day
        and places.to_hour_utc > cast(days.day_utc as timestamp)
    where days.changed_spans > 0
),

changed_days as (
    select day_utc, has_last_hour, from_hour_utc from arrived_hours
    union all
    select day_utc, has_last_hour, cast(null as timestamp) as from_hour_utc from moved_days
),

affected_days as (
    select day_utc, from_hour_utc from changed_days
    union all
    -- a build that did not finish has left them as it saw places and classes then
    select day_utc, cast(null as timestamp) as from_hour_utc from {{ source('plan', 'unfinished_days') }}
    union all
    -- the first hour of the next day looks back at this day's last
    select cast(day_utc + interval 1 day as date) as day_utc, cast(null as timestamp) as from_hour_utc from changed_days where has_last_hour
)

select
    affected_days.day_utc,
    min(coalesce(affected_days.from_hour_utc, cast(affected_days.day_utc as timestamp))) as from_hour_utc
from affected_days
-- what was pruned, and a day on which nothing has landed, is not computed
where affected_days.day_utc in (select day_utc from {{ source('plan', 'landed_days') }})
group by affected_days.day_utc
