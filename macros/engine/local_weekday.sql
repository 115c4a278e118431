{#- Day of the week (1 Monday to 7 Sunday, bigint) that clocks show in a time zone (IANA name) at a UTC timestamp without zone. -#}
{% macro local_weekday(instant, timezone) %}{{ return(adapter.dispatch('local_weekday')(instant, timezone)) }}{% endmacro %}
{% macro duckdb__local_weekday(instant, timezone) %}cast(isodow(({{ instant }} at time zone 'UTC') at time zone {{ timezone }}) as bigint){% endmacro %}
{% macro spark__local_weekday(instant, timezone) %}cast(weekday(from_utc_timestamp({{ instant }}, {{ timezone }})) + 1 as bigint){% endmacro %}
