-- Inventory records as delivered, without the losers of conflicts. Grain: delivery_seq, file_no, row_no.
select
    delivery_seq, file_no, row_no, source, is_alias, is_group_guessed, array_name, drive_id, raid_group_id, role, kind, slot, vendor, model, firmware,
    flash_cell, capacity_bytes, rpm, interface, raid_level, host, enclosure, site, timezone, deployed_on, valid_from, valid_to, collected_at
from {{ source('raw', 'drives') }} as delivered
where {{ is_live('drives', 'delivered') }}
