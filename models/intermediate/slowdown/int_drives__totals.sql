{{ config(materialized='view') }}
-- What the hours of each drive add up to: those that are there as rows, and those whose rows `drivetail prune` let go. Grain: drive_id.
with drive_hours as (
    select
        drive_id,
        slowdown,
        was_slow,
        slowdown >= {{ var('slow_threshold') }} as is_slow
    from {{ ref('int_drive_hours') }}
    where slowdown is not null
),

counted as (
    select
        drive_id,
        count(*) as drive_hours,
        count(case when is_slow then 1 end) as slow_hours,
        -- an interval starts at every slow hour that does not follow another
        count(case when is_slow and not coalesce(was_slow, false) then 1 end) as interval_count,
        max(slowdown) as max_slowdown,
        count(case when not was_slow and not is_slow then 1 end) as normal,
        count(case when not was_slow and is_slow then 1 end) as to_slow,
        count(case when was_slow and is_slow then 1 end) as slow_persist,
        count(case when was_slow and not is_slow then 1 end) as back_to_stable
    from drive_hours
    group by drive_id
    union all
    select
        drive_id, drive_hours, slow_hours, interval_count, max_slowdown, normal, to_slow, slow_persist, back_to_stable
    from {{ source('plan', 'pruned_drives') }}
)

select
    drive_id,
    cast(sum(drive_hours) as bigint) as drive_hours,
    cast(sum(slow_hours) as bigint) as slow_hours,
    cast(sum(interval_count) as bigint) as interval_count,
    max(max_slowdown) as max_slowdown,
    cast(sum(normal) as bigint) as normal,
    cast(sum(to_slow) as bigint) as to_slow,
    cast(sum(slow_persist) as bigint) as slow_persist,
    cast(sum(back_to_stable) as bigint) as back_to_stable
from counted
group by drive_id
