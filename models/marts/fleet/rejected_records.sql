-- Records that were turned away, each for its first failing column. Grain: file, row, as often as it was sent.
select source, file, {{ quoted('row') }}, reason, {{ quoted('column') }}, value, rejected_at
from {{ ref('stg_raw__rejected_records') }}
