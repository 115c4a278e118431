-- Records that ingest rejected, each with its first failing column. Grain: source, file, row, rejected_at.
select
    source,
    file,
    "row",
    reason,
    "column",
    value,
    rejected_at,
    delivery_seq
from {{ source('raw', 'rejected_records') }}
