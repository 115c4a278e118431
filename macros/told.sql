{#- A number as a person reads it: two decimals. -#}
{% macro told(number) %}cast(round({{ number }}, 2) as varchar){% endmacro %}
