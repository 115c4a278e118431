{#- Number of the ISO week (UTC) of an instant, from 0 for that of 1970-01-05: weeks can then be counted. -#}
{% macro week_no(instant) %}cast(floor(({{ hour_index(instant) }} - 96) / 168.0) as bigint){% endmacro %}
