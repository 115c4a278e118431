{#- See ref(): schema.table, without the database. -#}
{% macro source() %}{% do return(builtins.source(*varargs, **kwargs).include(database=false)) %}{% endmacro %}
