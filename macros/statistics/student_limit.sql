{#- The value that a variable of Student's t distribution exceeds with a small probability (at most 0.5), of some degrees of freedom. Wallace's
    transformation of a normal limit by Hastings' approximation (Abramowitz and Stegun, 26.2.23): too great by at most 1.1%
    from 9 degrees and down to a probability of 1e-5. Doubles as 5e0: Spark would divide decimals, to six digits. -#}
{% macro student_limit(probability, freedom) -%}
sqrt({{ freedom }} * (exp(
    power({{ normal_limit('sqrt(-2 * ln(' ~ probability ~ '))') }}, 2) * ({{ freedom }} - 5e0 / 6) / power({{ freedom }} - 2e0 / 3 + 1e-1 / {{ freedom }}, 2)
) - 1))
{%- endmacro %}
{% macro normal_limit(u) -%}
({{ u }} - (2.515517 + 0.802853 * {{ u }} + 0.010328 * power({{ u }}, 2))
    / (1 + 1.432788 * {{ u }} + 0.189269 * power({{ u }}, 2) + 0.001308 * power({{ u }}, 3)))
{%- endmacro %}
