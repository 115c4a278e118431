-- Inventory periods, the losers of conflicts left out. Grain: drive_id, valid_from.
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
    delivered.valid_from,
    delivered.valid_to,
    coalesce(date_trunc('hour', delivered.valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
    coalesce(date_trunc('hour', delivered.valid_to), timestamp '{{ var("end_of_time") }}') as to_hour_utc
from {{ source('raw', 'drives') }} as delivered
where not exists (
    select 1
    from {{ source('raw', 'retired_drives') }} as retired
    where retired.delivery_seq = delivered.delivery_seq
        and retired.file_no = delivered.file_no
        and retired.row_no = delivered.row_no
)
