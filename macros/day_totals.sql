{#- What a batch's days hold after it: `changed` (the model's CTE: keys and the counts that came and went) on top of what they held before.
    A key whose counts have all gone leaves no row. -#}
{% macro day_totals(keys, counts, stored) -%}
, totals as (
    select
        {{ keys | join(', ') }}
{%- for count in counts %},
        cast(sum({{ count }}) as bigint) as {{ count }}
{%- endfor %}
    from (
        select {{ (keys + counts) | join(', ') }} from changed
        union all
        select {{ (keys + counts) | join(', ') }} from {{ stored }}
    ) as counted
    group by {{ keys | join(', ') }}
)

select
    {{ keys | join(", ") }},
    {{ counts | join(', ') }},
    batch.build_seq
from totals
cross join {{ source('plan', 'batch') }} as batch
where {{ counts | join(' <> 0 or ') }} <> 0
{%- endmacro %}
