{#- A number in [0, 1) that depends on a text only: the first 28 bits of its MD5. -#}
{% macro hash_ratio(text) %}{{ return(adapter.dispatch('hash_ratio')(text)) }}{% endmacro %}
{% macro duckdb__hash_ratio(text) %}(cast('0x' || substr(md5({{ text }}), 1, 7) as bigint) / 268435456.0){% endmacro %}
{% macro spark__hash_ratio(text) %}(cast(conv(substr(md5({{ text }}), 1, 7), 16, 10) as bigint) / cast(268435456 as double)){% endmacro %}
