{#- What slow drives cost by some columns of fct_drive_costs in an ISO week (UTC): their sums, and how many drives were slow. -#}
{% macro drive_costs_by(keys) %}
select
    {{ keys | join(',\n    ') }},
    count(distinct drive_id) as slow_drive_count,
    cast(sum(slow_hours) as bigint) as slow_hours,
    cast(sum(tail_hours) as bigint) as tail_hours,
    cast(sum(judged_tail_hours) as bigint) as judged_tail_hours,
    cast(sum(tail_hours_caused) as bigint) as tail_hours_caused,
    cast(sum(dropped_hours) as bigint) as dropped_hours,
    sum(rio_lost) as rio_lost
from {{ ref('fct_drive_costs') }}
group by {{ keys | join(', ') }}
{% endmacro %}
