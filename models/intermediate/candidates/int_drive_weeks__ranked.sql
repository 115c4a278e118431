-- The drives of a kind at each week boundary whose outcome is known, ranked by what was known then. Grain: drive_id, boundary_utc.
select
    drive_id,
    boundary_utc,
    kind,
    raid_group_id,
    tail_hours_caused_after,
    count(*) over (partition by kind, boundary_utc) as drive_count,
    cast(row_number() over (partition by kind, boundary_utc order by expected_tail_hours desc, drive_id asc) as bigint) as model_rank,
    cast(row_number() over (partition by kind, boundary_utc order by slow_hours_28d desc, drive_id asc) as bigint) as most_slow_hours_28d_rank,
    cast(row_number() over (partition by kind, boundary_utc order by last_day_max_slowdown desc nulls last, drive_id asc) as bigint) as slowest_now_rank
from {{ ref('int_drive_weeks__intervals') }}
where tail_hours_caused_after is not null and training_drive_weeks > 0
