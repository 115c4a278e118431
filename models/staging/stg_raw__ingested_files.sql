-- Files of every delivery, with their row counts. Grain: delivery_seq, source, file, sha256.
select
    source, file, sha256, ingested_at, status, rows_delivered, rows_accepted, rows_rejected, rows_duplicate, rows_superseded, record_kind,
    note, delivery_seq
from {{ source('raw', 'ingested_files') }}
