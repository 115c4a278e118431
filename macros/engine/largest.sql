{#- The n largest non-null values of a group, largest first, as an array (shorter when the group is). -#}
{% macro largest(value, n) %}{{ return(adapter.dispatch('largest')(value, n)) }}{% endmacro %}
{% macro duckdb__largest(value, n) %}max({{ value }}, {{ n }}){% endmacro %}
{% macro spark__largest(value, n) %}slice(sort_array(collect_list({{ value }}), false), 1, {{ n }}){% endmacro %}
