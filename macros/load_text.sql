{#- A drive's I/Os over those of its peers, as text for a person. -#}
{% macro load_text(load_ratio) -%}
case when {{ load_ratio }} >= 0.1 then {{ rounded_text(load_ratio, 1) }} else {{ rounded_text(load_ratio, 3) }} end
{%- endmacro %}
