{#- Window that holds only the first of a row and the `row_count - 1` rows before it, for a min(). row_count may be SQL. -#}
{% macro first_of_rows(row_count, keys, order_by) -%}
partition by {{ keys }} order by {{ order_by }} rows between {{ row_count }} - 1 preceding and {{ row_count }} - 1 preceding
{%- endmacro %}
