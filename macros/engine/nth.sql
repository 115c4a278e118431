{#- Element n (from 1) of an array, null beyond its end. -#}
{% macro nth(array, n) %}{{ return(adapter.dispatch('nth')(array, n)) }}{% endmacro %}
{% macro duckdb__nth(array, n) %}({{ array }})[{{ n }}]{% endmacro %}
{% macro spark__nth(array, n) %}get({{ array }}, cast({{ n }} - 1 as int)){% endmacro %}
