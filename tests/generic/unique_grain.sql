{#- The columns that a model calls its grain name each row once. A row here is one key that several rows share. -#}
{% test unique_grain(model, columns) %}
select {{ columns | join(', ') }}, count(*) as row_count
from {{ model }}
group by {{ columns | join(', ') }}
having count(*) > 1
limit 100
{% endtest %}
