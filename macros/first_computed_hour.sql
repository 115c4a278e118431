{#- The hour from which on a build computes: of an open day the first of those that have arrived, else before all. -#}
{% macro first_computed_hour() -%}
    (select coalesce(max(from_hour_utc), timestamp '0001-01-01 00:00:00') from {{ source('plan', 'shown_days') }})
{%- endmacro %}
