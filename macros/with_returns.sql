{#- Quiet time after which an alert that came so often is over: the more often it came back, the longer. -#}
{% macro time_to_clear(episode_count) -%}
    {%- set longest_clearing = 7 -%}{#- times alert_clear_hours at most -#}
    least({{ episode_count }}, {{ longest_clearing }}) * interval {{ var('alert_clear_hours') }} hour
{%- endmacro %}

{#- CTEs `linked_NAME`, `numbered_NAME` and `ordered_NAME` of times at which a subject was slow: those that return have one `number`, and
episode_number within it; one that returns after the alert was over is_reopened.
times: relation with the columns of subject, time_number, first_slow_hour_utc and last_slow_hour_utc. -#}
{% macro with_returns(name, times, subject, time_number, number) -%}
{%- set again_days = 28 -%}{#- days without a slow hour after which what is slow again is another alert, not the same once more -#}
{%- set within -%} over (partition by {{ subject }}, {{ number }} order by {{ time_number }}) {%- endset -%}
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
        row_number(){{ within }} as episode_number,
        coalesce(
            first_slow_hour_utc > lag(last_slow_hour_utc){{ within }} + {{ time_to_clear('row_number()' ~ within ~ ' - 1') }}, false
        ) as is_reopened
    from numbered_{{ name }}
)
{%- endmacro %}
