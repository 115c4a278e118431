{#- A count and its noun: `1 hour`, `3 hours`. -#}
{% macro counted_noun(number, unit) -%}
cast({{ number }} as string) || case when {{ number }} = 1 then ' {{ unit }}' else ' {{ unit }}s' end
{%- endmacro %}
