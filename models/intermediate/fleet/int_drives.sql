-- Every drive seen in any record: what its latest inventory period says of it, how its hours are grouped, and where it reported first and last.
-- Drive-hours are counted by kind, time zone, class and age (int_day_counts, int_clock_hours): a drive of another kind than before touches all
-- its hours. Grain: drive_id.
with spans as (
    select
        drive_id,
        min(first_hour_utc) as first_hour_utc,
        max(last_hour_utc) as last_hour_utc,
        max_by(raid_group_id, last_hour_utc) as last_raid_group_id,
        max_by(is_group_guessed, last_hour_utc) as last_is_group_guessed,
        max_by(declared_kind, last_hour_utc) as declared_kind
    from {{ ref('int_drive_days') }}
    group by drive_id
),

-- devices that measured a serial at once are described by their own hosts
devices_apart as (
    select distinct drive_id, shared_serial from {{ ref('int_drive_days__merged') }} where shared_serial is not null
),

devices as (
    select * from {{ ref('int_devices__described') }} where drive_id in (select drive_id from devices_apart)
),

-- a serial that was measured in this way only is no drive; nor is the name of one, of which no hour was measured before it was seen
inventory as (
    select * from {{ ref('int_drives__periods') }}
    where is_latest
        and (
            drive_id in (select drive_id from spans)
            or (
                drive_id not in (select shared_serial from devices_apart)
                and drive_id not in (select alias from {{ ref('int_names') }} where alias <> drive_id)
            )
        )
),

-- the name that its host has for it now, or had last: of several paths all; a controller's name only where nobody names its namespace.
-- Another host, where it was before, may give that name to another drive. A letter that nobody bears after a boot is not said to have ended.
placed_names as (
    select
        aliases.drive_id,
        regexp_extract(aliases.alias, '/(.+)$', 1) as device,
        regexp_extract(aliases.alias, '/(nvme[0-9]+)$', 1) <> '' as is_controller,
        aliases.from_utc, aliases.to_utc,
        coalesce({{ host_of('aliases.alias') }} = {{ host_of("inventory.host || '/'") }}, false) as is_there,
        paths.drive_id is not null as has_paths
    from {{ ref('int_names') }} as aliases
    left join inventory on aliases.drive_id = inventory.drive_id
    left join (select distinct drive_id from {{ ref('int_drive_days__merged') }} where path_spans > 0) as paths on aliases.drive_id = paths.drive_id
    where aliases.alias like '%/%' and aliases.drive_id is not null
),

names as (
    select
        drive_id, device,
        rank() over (partition by drive_id order by is_there desc, to_utc desc, is_controller asc) = 1
        and (has_paths or from_utc + interval 60 minute >= max(from_utc) over (partition by drive_id, is_there, to_utc, is_controller)) as is_latest
    from placed_names
),

names_now as (
    select drive_id, {{ joined_texts('device', ', ') }} as device
    from (select distinct drive_id, device from names where is_latest) as names_of_paths
    group by drive_id
),

events as (
    select distinct drive_id from {{ ref('int_drive_events__identified') }}
)

select
    coalesce(inventory.drive_id, spans.drive_id, events.drive_id) as drive_id,
    -- without any period, what the delivery was said to be of
    coalesce(case when inventory.drive_id is null then coalesce(devices.kind, spans.declared_kind) else inventory.kind end, 'unknown') as kind,
    coalesce(
        inventory.peer_kind, devices.peer_kind, {{ peer_kind('spans.declared_kind', 'cast(null as string)', 'coalesce(spans.drive_id, events.drive_id)') }}
    ) as peer_kind,
    coalesce(inventory.timezone, 'unknown') as timezone,
    -- leave out unknown values
    concat_ws(
        ', ',
        'capacity ' || cast(coalesce(inventory.capacity_bytes, devices.capacity_bytes) as string),
        'rpm ' || cast(coalesce(inventory.rpm, devices.rpm) as string),
        'interface ' || coalesce(inventory.interface, devices.interface)
    ) as drive_class,
    coalesce(inventory.vendor, devices.vendor) as vendor,
    coalesce(inventory.model, devices.model) as model,
    -- a RAID controller's, which hides the drives behind it
    coalesce(regexp_extract(lower(coalesce(inventory.model, devices.model)), '({{ var("raid_controller_models") }})', 1) <> '', false) as is_logical,
    coalesce(inventory.firmware, devices.firmware) as firmware,
    coalesce(inventory.flash_cell, devices.flash_cell) as flash_cell,
    coalesce(inventory.capacity_bytes, devices.capacity_bytes) as capacity_bytes,
    coalesce(inventory.rpm, devices.rpm) as rpm,
    coalesce(inventory.interface, devices.interface) as interface,
    coalesce(inventory.host, devices.host) as host,
    inventory.enclosure, inventory.site, inventory.slot,
    coalesce(names_now.device, nullif(regexp_extract(coalesce(inventory.drive_id, spans.drive_id, events.drive_id), '/(.+)$', 1), '')) as device,
    inventory.deployed_on, inventory.deployed_on_source,
    inventory.drive_id is not null as has_inventory,
    spans.first_hour_utc, spans.last_hour_utc,
    coalesce(devices.kind, spans.declared_kind) as declared_kind,
    coalesce(spans.last_raid_group_id, inventory.raid_group_id) as current_raid_group_id,
    case
        when coalesce(spans.last_raid_group_id, inventory.raid_group_id) is not null
            then coalesce(spans.last_is_group_guessed, inventory.is_group_guessed)
    end as is_group_guessed
from inventory
full join spans on inventory.drive_id = spans.drive_id
left join devices on spans.drive_id = devices.drive_id
full join events on coalesce(inventory.drive_id, spans.drive_id) = events.drive_id
left join names_now on coalesce(inventory.drive_id, spans.drive_id, events.drive_id) = names_now.drive_id
