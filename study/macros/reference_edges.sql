{#- Query: each class and edge x at which a reference of the study asks for a share of this measure. -#}
{% macro reference_edges(measure) -%}
    select distinct class, x from {{ ref('study_measures') }} where measure = '{{ measure }}' and estimate <> 'percentile' and x is not null
{%- endmacro %}
