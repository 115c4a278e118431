{#- `create table if not exists` and `create or replace table ... as`. Spark's catalog lasts as long as its session, and what these hold is a
    few rows that a view says as well. -#}
{% macro create_table_if_missing() %}{{ return(adapter.dispatch('create_table_if_missing')()) }}{% endmacro %}
{% macro duckdb__create_table_if_missing() %}{{ return('create table if not exists') }}{% endmacro %}
{% macro spark__create_table_if_missing() %}{{ return('create or replace view') }}{% endmacro %}

{% macro create_or_replace_table() %}{{ return(adapter.dispatch('create_or_replace_table')()) }}{% endmacro %}
{% macro duckdb__create_or_replace_table() %}{{ return('create or replace table') }}{% endmacro %}
{% macro spark__create_or_replace_table() %}{{ return('create or replace view') }}{% endmacro %}
