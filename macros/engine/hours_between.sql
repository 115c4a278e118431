{#- Elapsed hours, as a double. Not dbt.datediff(..., 'hour'): 10:01 -> 10:59 is 0 on DuckDB (boundaries
    crossed) and 1 on dbt-spark 1.11 (rounded up); outage_hours must not depend on the engine. -#}
{% macro hours_between(earlier, later) %}{{ return(adapter.dispatch('hours_between')(earlier, later)) }}{% endmacro %}
{% macro duckdb__hours_between(earlier, later) %}(epoch_us({{ later }}) - epoch_us({{ earlier }})) / cast(3600000000 as double){% endmacro %}
{% macro spark__hours_between(earlier, later) %}(unix_micros({{ later }}) - unix_micros({{ earlier }})) / cast(3600000000 as double){% endmacro %}
