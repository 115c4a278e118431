{#- Median of some doubles of one row, nulls left out, (a + b) / 2 of an even count; null where all are. -#}
{% macro median_of(values) %}{{ return(adapter.dispatch('median_of')(values)) }}{% endmacro %}
{% macro duckdb__median_of(values) %}list_median([{{ values | join(', ') }}]){% endmacro %}
{% macro spark__median_of(values) %}{{ spark_median('sort_array(array_compact(array(' ~ values | join(', ') ~ ')))') }}{% endmacro %}

{#- The middle one of a sorted array, or the mean of the middle two; null of none. -#}
{% macro spark_median(sorted) -%}
    ((get({{ sorted }}, cast((size({{ sorted }}) - 1) div 2 as int)) + get({{ sorted }}, cast(size({{ sorted }}) div 2 as int))) / 2)
{%- endmacro %}
