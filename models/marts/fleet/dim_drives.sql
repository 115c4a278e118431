-- Every drive seen in any record. Grain: drive_id.
select
    drives.drive_id, drives.kind, drives.vendor, drives.model, drives.firmware, drives.flash_cell, drives.capacity_bytes, drives.rpm,
    drives.interface, drives.host, drives.enclosure, drives.site, drives.slot, drives.device, drives.deployed_on, drives.deployed_on_source,
    drives.first_hour_utc, drives.last_hour_utc, drives.current_raid_group_id, drives.is_group_guessed, drives.is_logical, drives.peer_kind, standing.left_at
from {{ ref('int_drives') }} as drives
left join {{ ref('int_drives__standing') }} as standing on drives.drive_id = standing.drive_id
