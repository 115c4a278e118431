{#- Ends of the 95% interval of a Poisson mean where `n` events were seen, by Wilson and Hilferty: for more than the 100 events of the seed poisson_limits, of
    which they are within 0.003%; z = 1.959963984540054. -#}
{% macro poisson_low(n) -%}
    {{ n }} * power(1 - 1 / nullif(9.0 * {{ n }}, 0) - 1.959963984540054 / nullif(3 * sqrt({{ n }}), 0), 3)
{%- endmacro %}
{% macro poisson_high(n) -%}
    ({{ n }} + 1) * power(1 - 1 / (9.0 * ({{ n }} + 1)) + 1.959963984540054 / (3 * sqrt({{ n }} + 1)), 3)
{%- endmacro %}
