{#- A ratio as text, rounded down to tenths: 2.58 is '2.5', as every engine writes it. -#}
{% macro to_tenths(ratio) %}{{ text_of_double('(' ~ whole('(' ~ ratio ~ ') * 10') ~ ') / 10') }}{% endmacro %}
