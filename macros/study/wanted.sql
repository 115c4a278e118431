{#- Where the study looks at a measure: class and x of every reference that asks for a share of it. -#}
{% macro wanted(measure) -%}
    select distinct class, x from {{ ref('study_measures') }} where measure = '{{ measure }}' and estimate <> 'percentile' and x is not null
{%- endmacro %}
