-- Drives' health readings, as delivered, without the losers of conflicts. Grain: delivery_seq, file_no, row_no.
select
    delivered.delivery_seq, delivered.file_no, delivered.row_no, delivered.source, delivered.is_alias, delivered.read_at,
    delivered.drive_id, delivered.attribute, delivered.raw_value, delivered.normalised_value
from {{ source('raw', 'drive_health') }} as delivered
where {{ is_live('drive_health', 'delivered') }}
