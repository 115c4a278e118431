{#- Ends of Wilson's 95% score interval of a share p seen over n independent observations; z = 1.959963984540054. -#}
{% macro wilson_low(p, n) -%}
    greatest(({{ p }} + 1.9207294103470627 / {{ n }} - {{ wilson_reach(p, n) }}) / (1 + 3.8414588206941254 / {{ n }}), 0.0)
{%- endmacro %}
{% macro wilson_high(p, n) -%}
    least(({{ p }} + 1.9207294103470627 / {{ n }} + {{ wilson_reach(p, n) }}) / (1 + 3.8414588206941254 / {{ n }}), 1.0)
{%- endmacro %}
{% macro wilson_reach(p, n) -%}
    1.959963984540054 * sqrt(({{ p }} * (1 - {{ p }}) + 0.9603647051735313 / {{ n }}) / {{ n }})
{%- endmacro %}
