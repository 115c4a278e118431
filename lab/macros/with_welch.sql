{#- The rows of a relation tested by Welch: `welch_t`, `welch_p`, `half_width` of the interval at a level, and `holm_p`, which is `welch_p` corrected by
    Holm over a family, the rows that are alike in some columns. The smallest p counts times their number, the next times one less, and it never falls;
    equal p get the same. Null where `welch_p` is. The relation has `standard_error` and `welch_df`; `difference`: its column, `level`: an expression. -#}
{% macro with_welch(relation, family, level, difference='difference') -%}
select
    * exclude (place, tests),
    case
        when welch_p is not null
            then least(1, max(welch_p * (tests - place + 1)) over (partition by {{ family | join(', ') }} order by place asc))
    end as holm_p
from (
    select
        *,
        rank() over (partition by {{ family | join(', ') }} order by welch_p asc nulls last) as place,
        count(welch_p) over (partition by {{ family | join(', ') }}) as tests
    from (
        select
            *,
            {{ difference }} / standard_error as welch_t,
            student_two_sided_p({{ difference }} / standard_error, welch_df) as welch_p,
            student_quantile(cast(1 - {{ level }} / 2 as double), welch_df) * standard_error as half_width
        from {{ relation }}
    ) as tested
) as ranked
{%- endmacro %}
