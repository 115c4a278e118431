{#- Half of the width of the interval of mean_a / mean_b, at the level `lab_level`: the delta method, with Student's quantile. Its degrees of
    freedom are those of Welch and Satterthwaite for the relative variances of the two means. Null where an n is below 2, a mean is 0, or neither
    sample varies. -#}
{% macro ratio_half_width(mean_a, sd_a, n_a, mean_b, sd_b, n_b) -%}
{%- set a = 'power(' ~ sd_a ~ ' / nullif(' ~ mean_a ~ ', 0), 2) / ' ~ n_a -%}
{%- set b = 'power(' ~ sd_b ~ ' / nullif(' ~ mean_b ~ ', 0), 2) / ' ~ n_b -%}
case
    when {{ sd_a }} + {{ sd_b }} > 0
        then student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), {{ satterthwaite(a, n_a, b, n_b) }})
            * abs({{ mean_a }} / {{ mean_b }}) * sqrt({{ a }} + {{ b }})
end
{%- endmacro %}
