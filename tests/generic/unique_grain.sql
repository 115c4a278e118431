{#- The columns that a model calls its grain name each row once and are never null. A row here is a key that several rows share, or that
    has a null; both in one pass, because views are computed once per test. -#}
{% test unique_grain(model, columns) %}
select {{ columns | join(', ') }}, count(*) as row_count
from {{ model }}
group by {{ columns | join(', ') }}
having count(*) > 1{% for column in columns %} or {{ column }} is null{% endfor %}
{% endtest %}
