{%- set day_index = hour_index('cast(day_utc as timestamp)') %}
-- Hours of each drive, added up from its days. Drives with a slowdown only. Grain: drive_id.
select
    drive_id,
    cast(sum(slowdown_hours) as bigint) as drive_hours,
    cast(sum(slow_hours) as bigint) as slow_hours,
    cast(sum(interval_count) as bigint) as interval_count,
    max(max_slowdown) as max_slowdown,
    {{ hour_at("min(" ~ first_hour_in('slowdown_in', day_index) ~ ")") }} as first_measured_hour_utc,
    {{ hour_at("max(" ~ last_hour_in('slowdown_in', day_index) ~ ")") }} as last_measured_hour_utc,
    {{ hour_at("min(case when slow_in <> 0 then " ~ first_hour_in('slow_in', day_index) ~ " end)") }} as first_slow_hour_utc,
    cast(sum(normal_hours) as bigint) as normal,
    cast(sum(to_slow_hours) as bigint) as to_slow,
    cast(sum(slow_persist_hours) as bigint) as slow_persist,
    cast(sum(back_to_stable_hours) as bigint) as back_to_stable
from {{ ref('int_drive_days') }}
where slowdown_hours > 0
group by drive_id
