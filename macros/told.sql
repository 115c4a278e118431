{#- A number as a person reads it: two decimals. -#}
{% macro told(number) %}cast(round({{ number }}, 2) as varchar){% endmacro %}

{#- A number of things, such as `1 hour` or `3 hours`. -#}
{% macro some(number, unit) -%}
cast({{ number }} as varchar) || case when {{ number }} = 1 then ' {{ unit }}' else ' {{ unit }}s' end
{%- endmacro %}
