{#- Year of age of a drive, from 1: the first year is year 1; a day before deployment has none (null). -#}
{% macro age_year(deployed_on, instant) -%}
{%- set days_per_age_year = 365.25 %}
    case
        when {{ days_between(deployed_on, instant) }} >= 0
            then cast(floor({{ days_between(deployed_on, instant) }} / {{ days_per_age_year }}) as bigint) + 1
    end
{%- endmacro %}
