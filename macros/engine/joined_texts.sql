{#- The texts of a group in their order, joined. -#}
{% macro joined_texts(text, separator) %}{{ return(adapter.dispatch('joined_texts')(text, separator)) }}{% endmacro %}
{% macro duckdb__joined_texts(text, separator) %}string_agg({{ text }}, '{{ separator }}' order by {{ text }}){% endmacro %}
{% macro spark__joined_texts(text, separator) %}array_join(sort_array(collect_list({{ text }})), '{{ separator }}'){% endmacro %}
