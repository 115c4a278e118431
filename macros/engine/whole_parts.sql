{#- A double that is not negative times a power of two, as a whole number. -#}
{% macro whole_parts(value, parts) %}{{ return(adapter.dispatch('whole_parts')(value, parts)) }}{% endmacro %}
{% macro duckdb__whole_parts(value, parts) %}cast({{ value }} * {{ parts }} as decimal(38, 0)){% endmacro %}
{#- Spark makes a decimal of a double's shortest digits, not of its value: 2^60 + 2^8 would end in zeros. Its whole part and the rest both fit
    a bigint. -#}
{% macro spark__whole_parts(value, parts) -%}
    (cast(floor({{ value }}) as decimal(20, 0)) * cast({{ parts }} as decimal(17, 0)) + floor(({{ value }} - floor({{ value }})) * {{ parts }} + 0.5))
{%- endmacro %}
