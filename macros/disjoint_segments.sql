{#- Periods of membership that may overlap -> segments that do not: at every hour of a segment the period with the latest valid_from counts
    (an open valid_from is the oldest). `keys`: the columns within which periods compete. Grain: keys, from_hour_utc. -#}
{% macro disjoint_segments(periods, keys, flags=[]) -%}
boundaries as (
    select {{ keys | join(', ') }}, from_hour_utc as hour_utc from {{ periods }}
    union
    select {{ keys | join(', ') }}, to_hour_utc as hour_utc from {{ periods }}
),

stretches as (
    select
        *,
        lead(hour_utc) over (partition by {{ keys | join(', ') }} order by hour_utc) as next_hour_utc
    from boundaries
),

ranked as (
    select
        stretches.hour_utc as from_hour_utc,
        stretches.next_hour_utc as to_hour_utc,
        periods.drive_id,
        periods.raid_group_id,
        periods.role,
        periods.slot,
{%- for flag in flags %}
        periods.{{ flag }},
{%- endfor %}
        row_number() over (
            partition by {% for key in keys %}stretches.{{ key }}, {% endfor %}stretches.hour_utc
            order by periods.valid_from desc nulls last
        ) as period_rank
    from stretches
    inner join {{ periods }} as periods
        on {% for key in keys %}stretches.{{ key }} = periods.{{ key }} and {% endfor %}periods.from_hour_utc <= stretches.hour_utc
        and periods.to_hour_utc >= stretches.next_hour_utc
)

select drive_id, raid_group_id, role, slot,{% for flag in flags %} {{ flag }},{% endfor %} from_hour_utc, to_hour_utc
from ranked
where period_rank = 1
{%- endmacro %}
