{#- Hour of the day (0 to 23, bigint) that clocks show in a time zone (IANA name) at a UTC timestamp without zone. -#}
{% macro local_hour(instant, timezone) %}{{ return(adapter.dispatch('local_hour')(instant, timezone)) }}{% endmacro %}
{% macro duckdb__local_hour(instant, timezone) %}cast(hour(({{ instant }} at time zone 'UTC') at time zone {{ timezone }}) as bigint){% endmacro %}
{% macro spark__local_hour(instant, timezone) %}cast(hour(from_utc_timestamp({{ instant }}, {{ timezone }})) as bigint){% endmacro %}
