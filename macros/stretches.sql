{#- CTE `stretches`: each period of a relation cut where one of its key begins or ends (from_hour_utc, to_hour_utc), so that the periods of a key
    in a stretch hold throughout it (stretch_from_utc, stretch_to_utc). A period without length is in none. -#}
{% macro stretches(periods, key) -%}
stretches as (
    select
        {{ periods }}.*,
        cuts.hour_utc as stretch_from_utc,
        cuts.next_hour_utc as stretch_to_utc
    from (
        select {{ key }}, hour_utc, lead(hour_utc) over (partition by {{ key }} order by hour_utc) as next_hour_utc
        from (
            select {{ key }}, from_hour_utc as hour_utc from {{ periods }} where from_hour_utc < to_hour_utc
            union
            select {{ key }}, to_hour_utc as hour_utc from {{ periods }} where from_hour_utc < to_hour_utc
        ) as ends
    ) as cuts
    inner join {{ periods }}
        on cuts.{{ key }} = {{ periods }}.{{ key }}
        and {{ periods }}.from_hour_utc <= cuts.hour_utc
        and {{ periods }}.to_hour_utc >= cuts.next_hour_utc
)
{%- endmacro %}

{#- CTE `joined_periods`: stretches that follow each other without a change of `columns` are one period, with period_no by key. -#}
{% macro joined_stretches(stretches, key, columns) -%}
joined_periods as (
    select {{ key }}, {{ columns | join(', ') }}, period_no, min(stretch_from_utc) as from_hour_utc, max(stretch_to_utc) as to_hour_utc
    from (
        select *, sum(is_beginning) over (partition by {{ key }} order by stretch_from_utc) as period_no
        from (
            select
                *,
                case
                    when lag(stretch_to_utc) over stretch_before = stretch_from_utc
                        and (lag(({{ columns | join(', ') }})) over stretch_before is not distinct from ({{ columns | join(', ') }}))
                        then 0
                    else 1
                end as is_beginning
            from {{ stretches }}
            window stretch_before as (partition by {{ key }} order by stretch_from_utc)
        ) as begun
    ) as numbered
    group by {{ key }}, {{ columns | join(', ') }}, period_no
)
{%- endmacro %}
