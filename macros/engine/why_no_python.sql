{#- Why a model in Python has no rows, as a text; null where the engine runs it. -#}
{% macro why_no_python() %}{{ return(adapter.dispatch('why_no_python')()) }}{% endmacro %}
{% macro duckdb__why_no_python() %}cast(null as string){% endmacro %}
{% macro spark__why_no_python() %}'its fit is in Python, which dbt does not run in a Spark session; drivetail build --target spark runs it'{% endmacro %}
