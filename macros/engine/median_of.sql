{#- Median of some doubles of one row, nulls left out, (a + b) / 2 of an even count; null where all are. -#}
{% macro median_of(values) %}{{ return(adapter.dispatch('median_of')(values)) }}{% endmacro %}
{% macro duckdb__median_of(values) %}list_median([{{ values | join(', ') }}]){% endmacro %}
{% macro spark__median_of(values) -%}
    {%- set sorted = 'array_sort(array_compact(array(' ~ values | join(', ') ~ ')))' -%}
    (get({{ sorted }}, cast(floor((size({{ sorted }}) - 1) / 2) as int)) + get({{ sorted }}, cast(floor(size({{ sorted }}) / 2) as int))) / 2
{%- endmacro %}
