{#- The rows of a relation with `holm_p`: `welch_p` corrected by Holm over a family, the rows that are alike in some columns. The smallest p counts
    times their number, the next times one less, and it never falls; equal p get the same. Null where `welch_p` is. -#}
{% macro with_holm(relation, family) -%}
select
    *,
    case
        when welch_p is not null
            then least(1, max(welch_p * (tests - place + 1)) over (partition by {{ family | join(', ') }} order by place asc))
    end as holm_p
from (
    select
        *,
        rank() over (partition by {{ family | join(', ') }} order by welch_p asc nulls last) as place,
        count(welch_p) over (partition by {{ family | join(', ') }}) as tests
    from {{ relation }}
) as ranked
{%- endmacro %}
