{#- Whole hours since 1970-01-01 00:00 UTC of a timestamp, floored, as a bigint. Differences of hour indexes count hour boundaries. -#}
{% macro hour_index(instant) %}{{ return(adapter.dispatch('hour_index')(instant)) }}{% endmacro %}
{% macro duckdb__hour_index(instant) %}cast(floor(epoch_us({{ instant }}) / 3600000000.0) as bigint){% endmacro %}
{% macro spark__hour_index(instant) %}cast(floor(unix_micros({{ instant }}) / cast(3600000000 as double)) as bigint){% endmacro %}
