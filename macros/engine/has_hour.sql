{#- Whether a set of hours (hour_bit) holds the hour of a timestamp; the day is the caller's to match. -#}
{% macro has_hour(hours, instant) %}{{ return(adapter.dispatch('has_hour')(hours, instant)) }}{% endmacro %}
{% macro duckdb__has_hour(hours, instant) %}((({{ hours }}) >> hour({{ instant }})) & 1) = 1{% endmacro %}
{% macro spark__has_hour(hours, instant) %}(shiftright({{ hours }}, hour({{ instant }})) & 1) = 1{% endmacro %}
