-- Histograms of latencies, as delivered, without the losers of conflicts. Grain: delivery_seq, file_no, row_no, upper_us.
select
    delivered.delivery_seq, delivered.file_no, delivered.row_no, delivered.source, delivered.is_alias, delivered.hour_utc,
    delivered.drive_id, delivered.upper_us, delivered.io_count, delivered.from_utc, delivered.to_utc
from {{ source('raw', 'drive_latencies') }} as delivered
where {{ is_live('drive_latencies', 'delivered') }}
