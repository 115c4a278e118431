{#- Whether a record of a raw table lost no conflict. `record` is what the model calls its rows. -#}
{% macro is_live(table, record) -%}
not exists (
    select 1
    from {{ source('raw', 'retired_' ~ table) }} as retired
    where retired.delivery_seq = {{ record }}.delivery_seq
        and retired.file_no = {{ record }}.file_no
        and retired.row_no = {{ record }}.row_no
)
{%- endmacro %}
