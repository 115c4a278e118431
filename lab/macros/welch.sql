{#- Welch's test of two samples: relations a and b with the columns `n`, `variance` (n - 1). Null where one has fewer than 2, or both do not vary. -#}
{#- Columns of both samples and of the difference of their means, for with_welch. -#}
{% macro welch_sides(a, b) -%}
{{ a }}.n as n_a,
        {{ b }}.n as n_b,
        {{ a }}.mean as mean_a,
        {{ b }}.mean as mean_b,
        sqrt({{ a }}.variance) as sd_a,
        sqrt({{ b }}.variance) as sd_b,
        {{ a }}.mean - {{ b }}.mean as difference,
        {{ welch_error(a, b) }} as standard_error,
        {{ welch_freedom(a, b) }} as welch_df
{%- endmacro %}

{#- Standard error of the difference of their means, each with its own variance. -#}
{% macro welch_error(a, b) -%}
case when {{ has_welch(a, b) }} then sqrt({{ a }}.variance / {{ a }}.n + {{ b }}.variance / {{ b }}.n) end
{%- endmacro %}

{#- Degrees of freedom of Welch and Satterthwaite. -#}
{% macro welch_freedom(a, b) -%}
case
    when {{ has_welch(a, b) }}
        then {{ satterthwaite(a ~ '.variance / ' ~ a ~ '.n', a ~ '.n', b ~ '.variance / ' ~ b ~ '.n', b ~ '.n') }}
end
{%- endmacro %}

{#- Standard error of the difference of their means with one variance for both. -#}
{% macro pooled_error(a, b) -%}
case
    when {{ has_welch(a, b) }}
        then sqrt(
            (({{ a }}.n - 1) * {{ a }}.variance + ({{ b }}.n - 1) * {{ b }}.variance) / ({{ a }}.n + {{ b }}.n - 2)
            * (1.0 / {{ a }}.n + 1.0 / {{ b }}.n)
        )
end
{%- endmacro %}

{% macro has_welch(a, b) -%}
{{ a }}.variance + {{ b }}.variance > 0
{%- endmacro %}
