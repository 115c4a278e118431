-- Records that ingest rejected, each with its first failing column. Grain: source, file, row, rejected_at.
select
    source, file,
    {{ quoted('row') }},
    reason,
    {{ quoted('column') }},
    value, rejected_at, delivery_seq
from {{ source('raw', 'rejected_records') }}
