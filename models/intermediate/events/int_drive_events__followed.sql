-- How soon at or after each event its drive had a slowdown, and was slow. Grain: drive_id, occurred_at, event_type.
with steps as (
{%- for hours in range((var('event_window_hours') | max) + 1) %}
    select cast({{ hours }} as bigint) as hours_on, interval {{ hours }} hour as time_on
    {%- if not loop.last %} union all{% endif %}
{%- endfor %}
),

looked_at as (
    select
        events.drive_id, events.occurred_at, events.event_type,
        steps.hours_on,
        events.hour_utc + steps.time_on as hour_utc
    from {{ ref('int_drive_events__identified') }} as events
    cross join steps
)

select
    looked_at.drive_id, looked_at.occurred_at, looked_at.event_type,
    min(looked_at.hours_on) as hours_until_slowdown,
    min(case when slow_hours.is_slow then looked_at.hours_on end) as hours_until_slow
from looked_at
inner join {{ ref('int_drive_days') }} as days on looked_at.drive_id = days.drive_id and cast(looked_at.hour_utc as date) = days.day_utc
left join {{ ref('int_drive_hours__slow') }} as slow_hours
    on looked_at.drive_id = slow_hours.drive_id and looked_at.hour_utc = slow_hours.hour_utc
where {{ has_hour('days.slowdown_in', 'looked_at.hour_utc') }}
group by looked_at.drive_id, looked_at.occurred_at, looked_at.event_type
