{#- A score that each row of a group makes of the one before, as an array: `start`, then one for each row in order. `step` is SQL that the
    engines share; it says `score` for the last one and `day.COLUMN` for the row's columns. -#}
{% macro running_score(start, order_by, columns, step) %}{{ return(adapter.dispatch('running_score')(start, order_by, columns, step)) }}{% endmacro %}
{% macro duckdb__running_score(start, order_by, columns, step) -%}
    {#- DuckDB 1.5 folds a list into one of its own elements only: the scores so far ride along in each -#}
    {%- set before, day = [], [] -%}
    {%- for column in columns -%}
        {%- do before.append("'" ~ column ~ "': cast(null as double)") -%}
        {%- do day.append("'" ~ column ~ "': cast(" ~ column ~ " as double)") -%}
    {%- endfor -%}
    list_reduce(
        list_prepend(
            { {{- before | join(', ') }}, 'scores': [cast({{ start }} as double)]},
            list({ {{- day | join(', ') }}, 'scores': cast([] as double[])} order by {{ order_by }})
        ),
        lambda last, day: {
{%- for column in columns %}
            '{{ column }}': day.{{ column }},
{%- endfor %}
            'scores': list_append(last.scores, {{ step | replace('score', 'last.scores[-1]') }})
        }
    ).scores
{%- endmacro %}
{% macro spark__running_score(start, order_by, columns, step) -%}
    aggregate(
        sort_array(collect_list(struct({{ order_by }}, {{ columns | join(', ') }}))),
        array(cast({{ start }} as double)),
        (scores, day) -> concat(scores, array({{ step | replace('score', 'element_at(scores, -1)') }}))
    )
{%- endmacro %}
