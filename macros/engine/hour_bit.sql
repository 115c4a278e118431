{#- The set that holds one hour of a day, as a bigint: bit h (0 to 23) stands for the hour that begins at h:00. Sets of different hours add up. -#}
{% macro hour_bit(instant) %}{{ return(adapter.dispatch('hour_bit')(instant)) }}{% endmacro %}
{% macro duckdb__hour_bit(instant) %}(cast(1 as bigint) << hour({{ instant }})){% endmacro %}
{% macro spark__hour_bit(instant) %}shiftleft(cast(1 as bigint), hour({{ instant }})){% endmacro %}
