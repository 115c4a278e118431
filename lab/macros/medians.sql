{#- Ends of the interval of how far the median of one sorted list lies below that of another. Each median has an interval by order statistics at
    half of the level `lab_level`, so that both hold at once at that level or better. Null where a list is too short (below 7 at 5%). -#}
{% macro low_drop_of_medians(before, after) -%}
case when {{ low_median(before) }} > 0 then 1 - {{ high_median(after) }} / {{ low_median(before) }} end
{%- endmacro %}

{% macro high_drop_of_medians(before, after) -%}
case when {{ low_median(before) }} > 0 then 1 - {{ low_median(after) }} / {{ high_median(before) }} end
{%- endmacro %}

{% macro low_median(values) -%}
{{ values }}[{{ rank_below_median(values) }}]
{%- endmacro %}

{% macro high_median(values) -%}
{{ values }}[len({{ values }}) + 1 - {{ rank_below_median(values) }}]
{%- endmacro %}

{% macro rank_below_median(values) -%}
cast(median_rank(cast(len({{ values }}) as double), cast({{ var('lab_level') }} / 2 as double)) as bigint)
{%- endmacro %}
