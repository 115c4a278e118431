{{ config(meta={'made': 'each_build'}) }}
-- Drives that have gone: since their last row another serial has taken their slot, or an event reports the swap. Grain: drive_id.
with drives as (
    select * from {{ ref('int_drives') }}
),

events as (
    select * from {{ ref('int_drive_events__identified') }} where event_type = 'replacement'
),

swaps as (
    select drives.drive_id, periods.from_hour_utc as replaced_at, periods.drive_id as successor_drive_id
    from drives
    inner join {{ ref('int_drives__periods') }} as periods
        on drives.current_raid_group_id = periods.raid_group_id
        and drives.slot = periods.slot
        and drives.drive_id <> periods.drive_id
        -- the hour of the swap may have rows of both
        and periods.from_hour_utc >= drives.last_hour_utc
    union all
    select drives.drive_id, events.occurred_at as replaced_at, cast(null as string) as successor_drive_id
    from drives
    inner join events on drives.drive_id = events.drive_id and events.hour_utc >= drives.last_hour_utc
    union all
    select drives.drive_id, events.occurred_at as replaced_at, cast(null as string) as successor_drive_id
    from drives
    inner join events
        on drives.current_raid_group_id = events.raid_group_id
        and drives.slot = events.slot
        and events.hour_utc >= drives.last_hour_utc
)

select
    swaps.drive_id,
    min(swaps.replaced_at) as replaced_at,
    min_by(swaps.successor_drive_id, cast(swaps.replaced_at as string) || ' ' || swaps.successor_drive_id) as successor_drive_id
from swaps
cross join {{ ref('stg_raw__publication') }} as publication
-- inventory may know of a swap to come
where cast(date_trunc('hour', swaps.replaced_at) as timestamp) <= publication.last_hour_utc
group by swaps.drive_id
