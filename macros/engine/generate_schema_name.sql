{#- The schema a model names is the schema it gets: raw, plan, staging, intermediate, marts. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ custom_schema_name | trim if custom_schema_name else target.schema }}
{%- endmacro %}
