{#- Whether a period of dim_drive_periods covers an instant: one without a beginning or an end holds from ever, or for ever. -#}
{% macro is_valid_at(period, at) -%}
coalesce({{ period }}.valid_from_utc <= {{ at }}, true)
    and coalesce({{ period }}.valid_to_utc > {{ at }}, true)
{%- endmacro %}
