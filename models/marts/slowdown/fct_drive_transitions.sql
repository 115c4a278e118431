-- How drives pass between stable and slow from one hour to the next, in one RAID group. Grain: kind.
with pairs as (
    select
        coalesce(drives.kind, 'unknown') as kind,
        drive_hours.was_slow,
        drive_hours.slowdown >= {{ var('slow_threshold') }} as is_slow
    from {{ ref('int_drive_hours') }} as drive_hours
    left join {{ ref('dim_drives') }} as drives on drive_hours.drive_id = drives.drive_id
    where drive_hours.was_slow is not null
)

select
    kind,
    count(case when not was_slow and not is_slow then 1 end) as normal,
    count(case when not was_slow and is_slow then 1 end) as to_slow,
    count(case when was_slow and is_slow then 1 end) as slow_persist,
    count(case when was_slow and not is_slow then 1 end) as back_to_stable
from pairs
group by kind
