{%- set forecast_slow_hours_edges = [1, 3, 10, 30, 100] %}{#- of slow hours in 28 days: drives between two are alike -#}
{%- set forecast_expected_edges = [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16] %}{#- of expected tail hours: drives between two are alike -#}
-- When the next slow interval of each drive began in the 28 days after a week boundary, beside what was known at the boundary. Grain: drive_id, boundary_utc.
with starts as (
    select drive_id, started_at
    from {{ ref('int_slowdown_intervals') }}
    where degree = 'slow'
)

select
    drive_weeks.drive_id,
    drive_weeks.boundary_utc,
    drive_weeks.week_no,
    drive_weeks.kind,
    drive_weeks.raid_group_id,
    case when drive_weeks.slow_hours_28d > 0 then 'slow' else 'not slow' end as slow_28d_class,
    case
{%- for edge in forecast_slow_hours_edges %}
        when drive_weeks.slow_hours_28d < {{ edge }} then 'below {{ edge }}'
{%- endfor %}
        else '{{ forecast_slow_hours_edges[-1] }} and more'
    end as most_slow_hours_28d_class,
    case
{%- for edge in forecast_expected_edges %}
        when drive_weeks.expected_tail_hours < {{ edge }} then 'below {{ edge }}'
{%- endfor %}
        else '{{ forecast_expected_edges[-1] }} and more'
    end as model_class,
    min(starts.started_at) as next_started_at
from {{ ref('int_drive_weeks__expected') }} as drive_weeks
left join starts
    on drive_weeks.drive_id = starts.drive_id
    and starts.started_at >= drive_weeks.boundary_utc
    and starts.started_at < drive_weeks.boundary_utc + interval 28 day
group by
    drive_weeks.drive_id,
    drive_weeks.boundary_utc,
    drive_weeks.week_no,
    drive_weeks.kind,
    drive_weeks.raid_group_id,
    drive_weeks.slow_hours_28d,
    drive_weeks.expected_tail_hours
