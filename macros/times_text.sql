{#- How many times a value is another one, as text for a person: two decimals below 2, else one. -#}
{% macro times_text(ratio) -%}
case when {{ ratio }} < 2 then {{ rounded_text(ratio, 2) }} else {{ rounded_text(ratio, 1) }} end
{%- endmacro %}
