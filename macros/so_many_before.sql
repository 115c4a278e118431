{#- The window of the one row that many rows before, for a min(): DuckDB 1.5 cannot read a published lag() of more than one row. -#}
{% macro so_many_before(row_count, keys, order_by) -%}
partition by {{ keys }} order by {{ order_by }} rows between {{ row_count }} preceding and {{ row_count }} preceding
{%- endmacro %}
