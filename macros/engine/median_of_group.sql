{#- Median of a group's doubles, nulls left out, (a + b) / 2 of an even count; null where all are. window: of a window's rows instead, such as
    `partition by drive_id`. Spark's own takes a + (b - a) / 2, which may be another double. -#}
{% macro median_of_group(value, window=none) %}{{ return(adapter.dispatch('median_of_group')(value, ' over (' ~ window ~ ')' if window else '')) }}{% endmacro %}
{% macro duckdb__median_of_group(value, over) %}median({{ value }}){{ over }}{% endmacro %}
{% macro spark__median_of_group(value, over) %}{{ spark_median('sort_array(collect_list(' ~ value ~ ')' ~ over ~ ')') }}{% endmacro %}
