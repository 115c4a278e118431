{#- Window that holds only the row `row_count` rows before, for a min(). DuckDB 1.5 cannot read a published view with a lag() of more than one row. -#}
{% macro nth_row_before(row_count, keys, order_by) -%}
partition by {{ keys }} order by {{ order_by }} rows between {{ row_count }} preceding and {{ row_count }} preceding
{%- endmacro %}
