{#- How slow, of a slow drive-hour. -#}
{% macro severity(slowdown) -%}
    case
        when {{ slowdown }} < {{ var('severity_4x') }} then '2-4x'
        when {{ slowdown }} < {{ var('severity_8x') }} then '4-8x'
        else '8x+'
    end
{%- endmacro %}
