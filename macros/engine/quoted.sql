{#- A column's name that is a word of SQL. -#}
{% macro quoted(name) %}{{ return(adapter.quote(name)) }}{% endmacro %}
