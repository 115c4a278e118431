{#- The parts of a whole add up to it: in each combination of the columns `by`, sum(part) is `whole`, which all its rows share. -#}
{% test parts_add_up(model, part, whole, by) %}
select {{ by | join(', ') }}, sum({{ part }}) as parts, min({{ whole }}) as whole
from {{ model }}
group by {{ by | join(', ') }}
having sum({{ part }}) <> min({{ whole }}) or min({{ whole }}) <> max({{ whole }})
{% endtest %}
