{#- CTEs `linked_NAME`, `numbered_NAME` and `ordered_NAME` of times at which a subject was slow: those that return within again_days have one `number`, and
episode_number and earlier_slow_hour_utc within it.
times: relation with the columns of subject, time_number, first_slow_hour_utc and last_slow_hour_utc. -#}
{% macro with_returns(name, times, subject, time_number, number, again_days) -%}
linked_{{ name }} as (
    select
        *,
        coalesce(
            first_slow_hour_utc
            <= max(last_slow_hour_utc) over (
                partition by {{ subject }} order by {{ time_number }} rows between unbounded preceding and 1 preceding
            ) + interval {{ again_days }} day,
            false
        ) as is_again
    from {{ times }}
),

numbered_{{ name }} as (
    select
        *,
        sum(case when is_again then 0 else 1 end) over (
            partition by {{ subject }} order by {{ time_number }} rows between unbounded preceding and current row
        ) as {{ number }}
    from linked_{{ name }}
),

ordered_{{ name }} as (
    select
        *,
        row_number() over (partition by {{ subject }}, {{ number }} order by {{ time_number }}) as episode_number,
        lag(last_slow_hour_utc) over (partition by {{ subject }}, {{ number }} order by {{ time_number }}) as earlier_slow_hour_utc
    from numbered_{{ name }}
),
{%- endmacro %}
