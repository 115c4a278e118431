{#- A text as a double, null where it is not a number. -#}
{% macro number_or_null(text) %}try_cast({{ text }} as double){% endmacro %}
