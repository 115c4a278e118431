{#- A group's non-null values as an array, the least first. -#}
{% macro sorted_values(value) %}{{ return(adapter.dispatch('sorted_values')(value)) }}{% endmacro %}
{% macro duckdb__sorted_values(value) %}list_sort(list({{ value }}) filter ({{ value }} is not null)){% endmacro %}
{% macro spark__sorted_values(value) %}sort_array(collect_list({{ value }})){% endmacro %}
