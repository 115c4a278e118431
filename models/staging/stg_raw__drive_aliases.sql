-- Names of drives as delivered, without the losers of conflicts. Grain: delivery_seq, file_no, row_no.
select delivery_seq, file_no, row_no, source, alias, drive_id, valid_from, valid_to, collected_at
from {{ source('raw', 'drive_aliases') }} as delivered
where {{ is_live('drive_aliases', 'delivered') }}
