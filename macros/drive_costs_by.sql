{#- Cost of slow drives by some columns of fct_drive_costs in an ISO week (UTC): sums, and number of slow drives. -#}
{% macro drive_costs_by(keys) %}
select
    {{ keys | join(',\n    ') }},
    count(distinct drive_id) as slow_drive_count,
    cast(sum(slow_hours) as bigint) as slow_hours,
    cast(sum(tail_hours) as bigint) as tail_hours,
    cast(sum(judged_tail_hours) as bigint) as judged_tail_hours,
    cast(sum(tail_hours_caused) as bigint) as tail_hours_caused,
    cast(sum(dropped_hours) as bigint) as dropped_hours,
    cast(sum(io_count_before) as bigint) as io_count_before,
    cast(sum(io_count_after) as bigint) as io_count_after,
    cast(sum(io_count_after) as double) / nullif(sum(io_count_before), 0) as io_ratio,
    sum(rio_lost) as rio_lost
from {{ ref('fct_drive_costs') }}
group by {{ keys | join(', ') }}
{% endmacro %}
