{#- TiKV's score after quiet days: 100 in `tikv_recovery_days`, down to 1. -#}
{% macro tikv_score_after(score, quiet_days) -%}
    greatest(1.0, {{ score }} - {{ quiet_days }} * (100.0 / {{ var('tikv_recovery_days') }}))
{%- endmacro %}

{#- IASO's score after quiet days. Below 1 it is over. -#}
{% macro iaso_score_after(score, quiet_days) -%}
    case
        when {{ score }} * pow({{ var('iaso_decrease') }}, {{ quiet_days }}) >= 1.0
            then {{ score }} * pow({{ var('iaso_decrease') }}, {{ quiet_days }})
        else 0.0
    end
{%- endmacro %}
