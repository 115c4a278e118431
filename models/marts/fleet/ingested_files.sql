-- Files that were delivered, and how each of their rows was judged when it came. Grain: source, file, sha256.
select
    source,
    file,
    sha256,
    ingested_at,
    status,
    rows_delivered,
    rows_accepted,
    rows_rejected,
    rows_duplicate,
    rows_superseded,
    record_kind,
    note,
    delivery_seq
from {{ ref('stg_raw__ingested_files') }}
