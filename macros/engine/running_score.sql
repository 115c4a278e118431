{#- A score that each row of a group makes of the one before, as an array: `start`, then one for each row in order. `step` is SQL that the
    engines share; it says `score` for the last one and `day.COLUMN` for the row's columns. -#}
{% macro running_score(start, order_by, columns, step) %}{{ return(adapter.dispatch('running_score')(start, order_by, columns, step)) }}{% endmacro %}
{% macro duckdb__running_score(start, order_by, columns, step) -%}
    list_reduce(
        list({ {%- for column in columns %}'{{ column }}': {{ column }}{{ ", " if not loop.last }}{% endfor -%} } order by {{ order_by }}),
        lambda scores, day: list_append(scores, {{ step | replace('score', 'scores[-1]') }}),
        [cast({{ start }} as double)]
    )
{%- endmacro %}
{% macro spark__running_score(start, order_by, columns, step) -%}
    aggregate(
        array_sort(collect_list(struct({{ order_by }}, {{ columns | join(', ') }}))),
        array(cast({{ start }} as double)),
        (scores, day) -> concat(scores, array({{ step | replace('score', 'element_at(scores, -1)') }}))
    )
{%- endmacro %}
