{#- A double of at most six decimals as text, such as 2.5 and 3.0. Spark's own begins to write powers of ten at 1.0E7 and 1.0E-4. -#}
{% macro text_of_double(number) %}{{ return(adapter.dispatch('text_of_double')(number)) }}{% endmacro %}
{% macro duckdb__text_of_double(number) %}cast({{ number }} as string){% endmacro %}
{% macro spark__text_of_double(number) %}regexp_replace(cast(cast({{ number }} as decimal(38, 6)) as string), '([.][0-9]+?)0+$', '$1'){% endmacro %}
