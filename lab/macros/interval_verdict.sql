{#- On which side of a value an interval lies; `inconclusive` where it holds the value, or where there is none. -#}
{% macro interval_verdict(low, high, value, above, below) -%}
case when {{ low }} > {{ value }} then '{{ above }}' when {{ high }} < {{ value }} then '{{ below }}' else 'inconclusive' end
{%- endmacro %}
