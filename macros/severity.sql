{#- How slow, of a slow drive-hour. -#}
{% macro severity(slowdown) -%}
{%- set severity_4x = 4.0 %}
    case
        when {{ slowdown }} < {{ severity_4x }} then '2-4x'
        when {{ slowdown }} < {{ var('severity_8x') }} then '4-8x'
        else '8x+'
    end
{%- endmacro %}
