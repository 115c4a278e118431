{#- A number without its fraction, rounded down. Spark's floor() is a bigint and fails above it, where a double is whole anyway. -#}
{% macro whole(value) %}case when abs({{ value }}) < 9e15 then floor({{ value }}) else {{ value }} end{% endmacro %}
