-- Drive events as delivered, without the losers of conflicts. Grain: delivery_seq, file_no, row_no.
select
    delivery_seq, file_no, row_no, source, is_alias, occurred_at, drive_id, event_type, raid_group_id, slot, ended_at, detail, collected_at
from {{ source('raw', 'drive_events') }} as delivered
where {{ is_live('drive_events', 'delivered') }}
