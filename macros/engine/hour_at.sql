{#- The instant at which the hour of an hour index (hour_index) begins; null where it is null. -#}
{% macro hour_at(index) %}{{ return(adapter.dispatch('hour_at')(index)) }}{% endmacro %}
{% macro duckdb__hour_at(index) %}make_timestamp(cast({{ index }} as bigint) * 3600000000){% endmacro %}
{% macro spark__hour_at(index) %}cast(timestamp_micros(cast({{ index }} as bigint) * 3600000000) as timestamp){% endmacro %}
