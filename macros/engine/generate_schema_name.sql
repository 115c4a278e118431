{#- The schema a model names is the schema it gets: raw, plan, staging, intermediate, marts, report, study, status. An analyst's own models are in `custom`, whatever they
    name: nothing of theirs takes the place of a mart. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ 'custom' if node.original_file_path.startswith(('custom/', 'models/custom/')) else custom_schema_name | trim if custom_schema_name else target.schema }}
{%- endmacro %}
