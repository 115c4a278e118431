{#- Whether the outcome of a week boundary counts at a later one: it is known four weeks after, and used for `candidate_training_weeks` from then on. -#}
{% macro is_known_by(outcomes, boundaries) -%}
{{ outcomes }}.week_no between {{ boundaries }}.week_no - {{ var('candidate_training_weeks') + 3 }} and {{ boundaries }}.week_no - 4
{%- endmacro %}
