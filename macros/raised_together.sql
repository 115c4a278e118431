{#- The episodes of alerts of every place (place_type, place_id, subject_id, raised_at) that began together: a chain of them, no two neighbours further
    apart than an episode takes to end, in which at least `together_drives` drives began theirs within the window. A drive's own episodes are further apart
    than the window: as many episodes are as many drives. -#}
{% macro raised_together(alerts) -%}
    select *
    from (
        select
            *,
            count(case when is_together then 1 end) over (partition by place_type, place_id, chain_number) as together_count
        from (
            select
                *,
                sum(case when is_joined then 0 else 1 end) over (
                    partition by place_type, place_id order by raised_at, subject_id rows between unbounded preceding and current row
                ) as chain_number
            from (
                select
                    *,
                    coalesce(
                        raised_at <= lag(raised_at) over (partition by place_type, place_id order by raised_at, subject_id)
                        + interval {{ var('alert_clear_hours') }} hour,
                        false
                    ) as is_joined,
                    coalesce(
                        raised_at < min(raised_at) over ({{ first_of_rows(var('together_drives'), 'place_type, place_id', 'raised_at, subject_id') }})
                        + interval {{ var('alert_window_hours') }} hour,
                        false
                    ) as is_together
                from {{ alerts }}
            ) as neighbours
        ) as chained
    ) as crowds
    where together_count > 0
{%- endmacro %}
