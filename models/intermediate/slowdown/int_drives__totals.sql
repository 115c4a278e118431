{%- set day_index = hour_index('cast(day_utc as timestamp)') %}
-- Hours of each drive, added up from its days. Drives with a slowdown only. Grain: drive_id.
select
    drive_id,
    cast(sum(slowdown_hours) as bigint) as drive_hours,
    cast(sum(slow_hours) as bigint) as slow_hours,
    cast(sum(interval_count) as bigint) as interval_count,
    max(max_slowdown) as max_slowdown,
    -- the lowest and the highest bit of a set of hours
    {{ hour_at("min(" ~ day_index ~ " + length(bin(slowdown_in & -slowdown_in)) - 1)") }} as first_measured_hour_utc,
    {{ hour_at("max(" ~ day_index ~ " + length(bin(slowdown_in)) - 1)") }} as last_measured_hour_utc,
    {{ hour_at("min(case when slow_in <> 0 then " ~ day_index ~ " + length(bin(slow_in & -slow_in)) - 1 end)") }} as first_slow_hour_utc,
    cast(sum(normal_hours) as bigint) as normal,
    cast(sum(to_slow_hours) as bigint) as to_slow,
    cast(sum(slow_persist_hours) as bigint) as slow_persist,
    cast(sum(back_to_stable_hours) as bigint) as back_to_stable
from {{ ref('int_drive_days') }}
where slowdown_hours > 0
group by drive_id
