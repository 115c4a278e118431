{#- A number as text for a person, rounded to one decimal. -#}
{% macro format_1dp(number) %}cast(round({{ number }}, 1) as varchar){% endmacro %}
