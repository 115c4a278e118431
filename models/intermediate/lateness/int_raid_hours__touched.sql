-- RAID-hours that what has just arrived may change: all that this build computes again. Grain: raid_group_id, hour_utc.
with arrived as (
    select drive_id, raid_group_id, hour_utc from {{ source('raw', 'arrived_drive_hours') }}
    union all
    select drive_id, raid_group_id, hour_utc
    from {{ source('raw', 'retired_drive_hours') }}
    where retired_by_delivery_seq in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
),

arrived_raid_hours as (
    select distinct raid_group_id, hour_utc from arrived
),

stored as (
    select raid_group_id, hour_utc from {{ source('plan', 'stored_raid_hours') }}
),

-- a drive that reports from another group than inventory names no longer counts in the one inventory names
displaced as (
    select segments.raid_group_id, arrived.hour_utc
    from arrived
    inner join {{ ref('int_drives__segments') }} as segments
        on arrived.drive_id = segments.drive_id
        and segments.from_hour_utc <= arrived.hour_utc
        and segments.to_hour_utc > arrived.hour_utc
    where segments.raid_group_id <> arrived.raid_group_id
        and arrived.hour_utc in (select hour_utc from stored)
),

reassigned as (
    select stored.raid_group_id, stored.hour_utc
    from stored
    inner join {{ ref('int_drives__reassigned') }} as reassigned
        on stored.raid_group_id = reassigned.raid_group_id
        and reassigned.from_hour_utc <= stored.hour_utc
        and reassigned.to_hour_utc > stored.hour_utc
    union
    select drive_hours.raid_group_id, drive_hours.hour_utc
    from {{ source('plan', 'stored_drive_hours') }} as drive_hours
    inner join {{ ref('int_drives__reassigned') }} as reassigned
        on drive_hours.drive_id = reassigned.drive_id
        and reassigned.from_hour_utc <= drive_hours.hour_utc
        and reassigned.to_hour_utc > drive_hours.hour_utc
),

-- what counts as another kind than when its hours were counted
reclassified as (
    select raid_group_id, hour_utc
    from {{ source('plan', 'stored_drive_hours') }}
    where drive_id in (select drive_id from {{ ref('int_drives__reclassified') }})
    union
    select raid_group_id, hour_utc
    from stored
    where raid_group_id in (select raid_group_id from {{ ref('int_raid_groups__reclassified') }})
),

touched as (
    select raid_group_id, hour_utc from arrived_raid_hours
    union
    select raid_group_id, hour_utc from displaced
    union
    select raid_group_id, hour_utc from reassigned
    union
    select raid_group_id, hour_utc from reclassified
)

select raid_group_id, hour_utc from touched
union
-- the hour after looks back: transitions, RIO degradation, the censoring of an interval
select stored.raid_group_id, stored.hour_utc
from touched
inner join stored
    on touched.raid_group_id = stored.raid_group_id and touched.hour_utc + interval 1 hour = stored.hour_utc
