{{ config(meta={'made': 'each_build'}) }}
{%- set named_swap_days = 7 %}{#- within which a new serial takes the name of one that is gone: later the name alone says little -#}
-- Drives that have gone: since their last row another serial has taken their slot, a new one their name or their place in an array, or an event reports
-- the swap. Grain: drive_id.
with drives as (
    select * from {{ ref('int_drives') }}
),

events as (
    select * from {{ ref('int_drive_events__identified') }} where event_type = 'replacement'
),

-- the device of a host, or the name that ZFS has for a place. A name that is no serial is a device that nobody has seen yet
named_drives as (
    select
        names.drive_id, names.alias, names.from_utc, names.to_utc,
        {{ host_of('names.alias') }} as host,
        drives.current_raid_group_id, drives.is_group_guessed, drives.slot, drives.first_hour_utc, drives.last_hour_utc
    from {{ ref('int_names') }} as names
    inner join drives on names.drive_id = drives.drive_id
    where names.alias like '%/%' and names.alias <> names.drive_id
),

-- a serial that was not seen before, in the same RAID group of the same host
joined_drives as (
    select distinct
        old.drive_id,
        next.drive_id as successor_drive_id,
        next.first_hour_utc as replaced_at,
        old.alias = next.alias as is_same_name
    from named_drives as old
    inner join named_drives as next
        on old.current_raid_group_id = next.current_raid_group_id
        and old.host = next.host
        and old.drive_id <> next.drive_id
        and coalesce(old.slot = next.slot, true)
        and next.first_hour_utc >= old.last_hour_utc
        and next.first_hour_utc <= old.last_hour_utc + interval {{ named_swap_days }} day
    -- last and first drive of a name
    where old.to_utc > old.last_hour_utc
        and next.from_utc < next.first_hour_utc + interval 1 hour
        and next.to_utc > next.first_hour_utc
        and (old.alias = next.alias or not old.is_group_guessed)
),

swaps as (
    select
        drives.drive_id,
        periods.from_hour_utc as replaced_at,
        periods.drive_id as successor_drive_id,
        'slot' as seen_by
    from drives
    inner join {{ ref('int_drives__periods') }} as periods
        on drives.current_raid_group_id = periods.raid_group_id
        and drives.slot = periods.slot
        and coalesce(drives.enclosure = periods.enclosure, true)
        and drives.drive_id <> periods.drive_id
        -- the hour of the swap may have rows of both
        and periods.from_hour_utc >= drives.last_hour_utc
    union all
    select drive_id, replaced_at, successor_drive_id, 'device' as seen_by from joined_drives where is_same_name
    union all
    -- a drive that comes while another is still held may get another name: one left the array, and one joined it
    select drive_id, replaced_at, successor_drive_id, 'raid_group' as seen_by
    from (
        select
            *,
            min(successor_drive_id) over (partition by drive_id) = max(successor_drive_id) over (partition by drive_id) as is_only_one_that_joined,
            min(drive_id) over (partition by successor_drive_id) = max(drive_id) over (partition by successor_drive_id) as is_only_one_that_left
        from joined_drives
    ) as told
    where is_only_one_that_joined and is_only_one_that_left
{%- for named in ('drives.drive_id = events.drive_id', 'drives.current_raid_group_id = events.raid_group_id and drives.slot = events.slot') %}
    union all
    select
        drives.drive_id,
        events.occurred_at as replaced_at,
        cast(null as string) as successor_drive_id,
        'event' as seen_by
    from drives
    inner join events on {{ named }} and events.hour_utc >= drives.last_hour_utc
{%- endfor %}
)

select
    swaps.drive_id,
    min(swaps.replaced_at) as replaced_at,
    min_by(swaps.seen_by, cast(swaps.replaced_at as string) || ' ' || swaps.seen_by) as seen_by,
    min_by(swaps.successor_drive_id, cast(swaps.replaced_at as string) || ' ' || swaps.successor_drive_id) as successor_drive_id
from swaps
cross join {{ ref('stg_raw__publication') }} as publication
-- inventory may know of a swap to come
where cast(date_trunc('hour', swaps.replaced_at) as timestamp) <= publication.last_hour_utc
group by swaps.drive_id
