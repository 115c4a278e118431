{{ config(materialized='view') }}
-- Slowdowns before the horizon of `drivetail prune` that a chronic window may yet reach: what prune keeps of them. Those of the weeks
-- before the horizon, and of a drive whose RAID group stopped earlier those of the weeks before that. Grain: drive_id, hour_utc.
with slowdowns as (
    select drive_id, hour_utc, slowdown from {{ ref('int_drive_hours') }} where slowdown is not null
    union all
    select drive_id, hour_utc, slowdown from {{ source('plan', 'pruned_drive_hours') }}
),

last_hours as (
    select raid_hours.raid_group_id, max(raid_hours.hour_utc) as last_hour_utc
    from {{ ref('int_raid_hours') }} as raid_hours
    inner join {{ source('plan', 'pruned') }} as pruned on raid_hours.hour_utc < pruned.before_utc
    where raid_hours.is_valid
    group by raid_hours.raid_group_id
)

select
    slowdowns.drive_id,
    slowdowns.hour_utc,
    slowdowns.slowdown
from slowdowns
inner join {{ source('plan', 'pruned') }} as pruned on slowdowns.hour_utc < pruned.before_utc
left join {{ ref('int_drives__spans') }} as spans on slowdowns.drive_id = spans.drive_id
left join last_hours on spans.last_raid_group_id = last_hours.raid_group_id
where slowdowns.hour_utc > pruned.before_utc - interval {{ var('chronic_window_days') }} day
    or (
        slowdowns.hour_utc > last_hours.last_hour_utc - interval {{ var('chronic_window_days') }} day
        and slowdowns.hour_utc <= last_hours.last_hour_utc
    )
