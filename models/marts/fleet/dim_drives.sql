-- Every drive seen in any record. Grain: drive_id.
select
    drive_id, kind, vendor, model, firmware, flash_cell, capacity_bytes, rpm, interface, host, enclosure, site, slot, device, deployed_on,
    deployed_on_source, first_hour_utc, last_hour_utc, current_raid_group_id, is_group_guessed
from {{ ref('int_drives') }}
