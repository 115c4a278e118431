{#- Degrees of freedom of the difference of two means, each with its own variance, by the variances of the means (Welch and Satterthwaite). -#}
{% macro satterthwaite(variance_a, n_a, variance_b, n_b) -%}
power({{ variance_a }} + {{ variance_b }}, 2) / (power({{ variance_a }}, 2) / ({{ n_a }} - 1) + power({{ variance_b }}, 2) / ({{ n_b }} - 1))
{%- endmacro %}
