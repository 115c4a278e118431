{#- Start of the window that holds an instant; windows have this many minutes and start at midnight. -#}
{% macro window_start(instant, minutes) %}{{ return(adapter.dispatch('window_start')(instant, minutes)) }}{% endmacro %}
{% macro duckdb__window_start(instant, minutes) %}time_bucket(interval {{ minutes }} minute, {{ instant }}, timestamp '2000-01-01'){% endmacro %}
{% macro spark__window_start(instant, minutes) %}cast(timestamp_micros(cast(floor(unix_micros({{ instant }}) / cast({{ minutes * 60000000 }} as double)) as bigint) * {{ minutes * 60000000 }}) as timestamp){% endmacro %}
