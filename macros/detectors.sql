{#- Query: every detector by name, and whether it looks at samples within hours. -#}
{% macro detectors() -%}
{%- for detector in var('detectors') %}
    select '{{ detector }}' as detector, {{ (detector in var('sample_detectors')) | lower }} as is_of_samples{{ "\n    union all" if not loop.last }}
{%- endfor %}
{%- endmacro %}
