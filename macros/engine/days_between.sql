{#- Whole days from a date to the date of a timestamp, as a bigint; negative when the timestamp is earlier. -#}
{% macro days_between(earlier_date, later_timestamp) %}{{ return(adapter.dispatch('days_between')(earlier_date, later_timestamp)) }}{% endmacro %}
{% macro duckdb__days_between(earlier_date, later_timestamp) %}date_diff('day', {{ earlier_date }}, cast({{ later_timestamp }} as date)){% endmacro %}
{% macro spark__days_between(earlier_date, later_timestamp) %}cast(datediff(cast({{ later_timestamp }} as date), {{ earlier_date }}) as bigint){% endmacro %}
