{#- Relations are named schema.table, without the database: the same view text then holds in the build database, in the
    published file under whatever name a reader attaches it, and on Spark. -#}
{% macro ref() %}{% do return(builtins.ref(*varargs, **kwargs).include(database=false)) %}{% endmacro %}
