{#- Run SQL statements, one after the other. On DuckDB they go together: each that dbt asks for costs more than a view takes. -#}
{% macro run_all(statements) %}{% do adapter.dispatch('run_all')(statements) %}{% endmacro %}
{% macro duckdb__run_all(statements) %}{% call statement('all', auto_begin=false) %}{{ statements | join(';\n') }}{% endcall %}{% endmacro %}
{% macro spark__run_all(statements) %}{% for each in statements %}{% do run_query(each) %}{% endfor %}{% endmacro %}
