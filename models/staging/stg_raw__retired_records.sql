-- Drive-hours, inventory records and drive events that lost a conflict. Grain: record_kind, delivery_seq, file_no, row_no.
{%- for record_kind in ('drive_hours', 'drives', 'drive_events') %}
select
    '{{ record_kind }}' as record_kind,
    delivery_seq, file_no, row_no, reason, retired_by_delivery_seq
from {{ source('raw', 'retired_' ~ record_kind) }}
{{ 'union all' if not loop.last }}
{%- endfor %}
