{#- CTEs `boundaries` and `stretches`: the stretches of hours, by `key`, between which no period of a relation begins or ends (from_hour_utc,
    to_hour_utc); the last of a key has no next_hour_utc. is_all_time: also before the first period and after the last. -#}
{% macro stretches(periods, key, is_all_time=false) -%}
boundaries as (
    select {{ key }}, from_hour_utc as hour_utc from {{ periods }} where from_hour_utc < to_hour_utc
    union
    select {{ key }}, to_hour_utc as hour_utc from {{ periods }} where from_hour_utc < to_hour_utc
{%- for time in ('beginning_of_time', 'end_of_time') if is_all_time %}
    union
    select {{ key }}, timestamp '{{ var(time) }}' as hour_utc from {{ periods }} where from_hour_utc < to_hour_utc
{%- endfor %}
),

stretches as (
    select {{ key }}, hour_utc, lead(hour_utc) over (partition by {{ key }} order by hour_utc) as next_hour_utc
    from boundaries
)
{%- endmacro %}

{#- The stretches that `stretches` makes of a relation's periods, each with the periods that hold throughout it. -#}
{% macro periods_of_stretches(periods, key) -%}
stretches
    inner join {{ periods }}
        on stretches.{{ key }} = {{ periods }}.{{ key }}
        and {{ periods }}.from_hour_utc <= stretches.hour_utc
        and {{ periods }}.to_hour_utc >= stretches.next_hour_utc
{%- endmacro %}
