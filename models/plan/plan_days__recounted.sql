-- Days whose counts by kind, time zone, class and age a build makes again, because a drive or RAID group is grouped differently now.
-- Grain: day_utc.
with changed_classes as (
    select coalesce(now.is_raid_group, before.is_raid_group) as is_raid_group, coalesce(now.id, before.id) as id
    from {{ ref('plan_classes') }} as now
    full join {{ source('plan', 'last_classes') }} as before on now.is_raid_group = before.is_raid_group and now.id = before.id
    where coalesce(now.class, 'unknown') <> coalesce(before.class, 'unknown')
)

select days.day_utc
from {{ ref('int_drive_days') }} as days
where days.drive_id in (select id from changed_classes where not is_raid_group)
union
select days.day_utc
from {{ ref('int_raid_group_days') }} as days
where days.raid_group_id in (select id from changed_classes where is_raid_group)
