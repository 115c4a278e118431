{{ config(materialized='view') }}
-- Inventory periods of every drive, what all sources say of it made one. Grain: drive_id, valid_from.
select
    delivered.drive_id,
    delivered.raid_group_id,
    -- a drive whose role nobody states serves data
    coalesce(delivered.role, 'data') as role,
    delivered.kind,
    delivered.slot,
    delivered.vendor,
    delivered.model,
    delivered.firmware,
    delivered.flash_cell,
    delivered.capacity_bytes,
    delivered.rpm,
    delivered.interface,
    delivered.raid_level,
    delivered.host,
    delivered.enclosure,
    delivered.site,
    delivered.timezone,
    delivered.deployed_on,
    cast(null as varchar) as deployed_on_source,
    delivered.valid_from,
    delivered.valid_to,
    false as is_group_guessed,
    false as is_mapped,
    coalesce(date_trunc('hour', delivered.valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
    coalesce(date_trunc('hour', delivered.valid_to), timestamp '{{ var("end_of_time") }}') as to_hour_utc
from {{ ref('stg_raw__drives') }} as delivered
where delivered.source is null
    and not exists (select 1 from {{ ref('int_drives__host_periods') }} as hosts where hosts.drive_id = delivered.drive_id)
union all
select
    drive_id,
    raid_group_id,
    coalesce(role, 'data') as role,
    kind,
    slot,
    vendor,
    model,
    firmware,
    flash_cell,
    capacity_bytes,
    rpm,
    interface,
    raid_level,
    host,
    enclosure,
    site,
    timezone,
    deployed_on,
    deployed_on_source,
    nullif(from_hour_utc, timestamp '{{ var("beginning_of_time") }}') as valid_from,
    nullif(to_hour_utc, timestamp '{{ var("end_of_time") }}') as valid_to,
    is_group_guessed,
    is_mapped,
    from_hour_utc,
    to_hour_utc
from {{ ref('int_drives__host_periods') }}
