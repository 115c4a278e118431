{#- A number as text for a person, rounded to the given number of decimals. -#}
{% macro rounded_text(number, decimals=2) -%}
{{ text_of_double('(' ~ whole('(' ~ number ~ ') * ' ~ 10 ** decimals ~ ' + 0.5') ~ ') / ' ~ 10 ** decimals) }}
{%- endmacro %}
