{#- A number is never below its minimum. Null says that the number is unknown and passes. -#}
{% test at_least(model, column_name, minimum) %}
select {{ column_name }}
from {{ model }}
where {{ column_name }} < {{ minimum }}
{% endtest %}
