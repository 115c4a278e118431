{#- The hours of a day that follow an hour of a set (hour_bit): of the same day, or of the day before, null where there is none, its last. -#}
{% macro hours_after(today, yesterday) %}{{ return(adapter.dispatch('hours_after')(today, yesterday)) }}{% endmacro %}
{% macro duckdb__hours_after(today, yesterday) %}((({{ today }} << 1) & 16777215) | coalesce(({{ yesterday }} >> 23) & 1, 0)){% endmacro %}
{% macro spark__hours_after(today, yesterday) %}((shiftleft({{ today }}, 1) & 16777215) | coalesce(shiftright({{ yesterday }}, 23) & 1, 0)){% endmacro %}
