{#- A number as text for a person, rounded to two decimals. -#}
{% macro format_2dp(number) %}cast(round({{ number }}, 2) as varchar){% endmacro %}
