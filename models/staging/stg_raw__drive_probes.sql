-- Slices of probes of suspect drives, as delivered, without the losers of conflicts. Grain: delivery_seq, file_no, row_no.
select
    delivered.delivery_seq, delivered.file_no, delivered.row_no, delivered.source, delivered.probed_at, delivered.suspect_id, delivered.drive_id,
    delivered.slice_no, delivered.pattern, delivered.read_count, delivered.failed_count, delivered.seconds, delivered.mean_us, delivered.p50_us,
    delivered.p90_us, delivered.p95_us, delivered.p99_us, delivered.other_ios, delivered.read_by
from {{ source('raw', 'drive_probes') }} as delivered
where {{ is_live('drive_probes', 'delivered') }}
