{#- Whether what was expected at a week boundary counts for one later: what came is known four weeks after, and believed for so many more. -#}
{% macro is_known_by(outcomes, boundaries) -%}
{{ outcomes }}.week_no between {{ boundaries }}.week_no - {{ var('candidate_training_weeks') + 3 }} and {{ boundaries }}.week_no - 4
{%- endmacro %}
