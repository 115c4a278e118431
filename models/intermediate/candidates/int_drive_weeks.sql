-- Facts known of each drive at a boundary, of drives with a slow hour in the 28 days before it. Grain: drive_id, boundary_utc.
with slow as (
    select
        days.drive_id,
        boundaries.boundary_utc, boundaries.is_monday,
        cast(sum(days.slow_hours) as bigint) as slow_hours_28d,
        cast(sum(days.together_hours) as bigint) as together_hours_28d,
        cast(sum(days.tail_hours_caused) as bigint) as tail_hours_caused_28d,
        cast(sum(days.tail_hours_paired) as bigint) as tail_hours_paired_28d,
        count(case when days.day_utc >= cast(boundaries.boundary_utc - interval 14 day as date) then 1 end) as slow_days_14d,
        cast(coalesce(sum(case when days.day_utc >= cast(boundaries.boundary_utc - interval 3 day as date) then days.slow_hours end), 0) as bigint) as slow_hours_3d,
        {{ median_of_group('days.load_ratio') }} as load_ratio,
        max(days.last_slow_hour_utc) as last_slow_hour_utc
    from {{ ref('int_drive_days__slow') }} as days
    inner join {{ ref('int_boundaries') }} as boundaries
        on days.day_utc < cast(boundaries.boundary_utc as date)
        and days.day_utc >= cast(boundaries.boundary_utc - interval 28 day as date)
    group by days.drive_id, boundaries.boundary_utc, boundaries.is_monday
),

observed as (
    select
        slow.drive_id, slow.boundary_utc,
        max_by(days.raid_group_id, cast(days.day_utc as string) || ' ' || days.raid_group_id) as raid_group_id,
        max_by(days.is_group_guessed, cast(days.day_utc as string) || ' ' || days.raid_group_id) as is_group_guessed,
        cast(sum(days.judged_hours) as bigint) as drive_hours_28d,
        count(distinct days.day_utc) as observed_days_28d,
        cast(sum(days.reported_hours) as bigint) as reported_hours_28d,
        cast(
            coalesce(sum(case when days.day_utc >= cast(slow.boundary_utc - interval 3 day as date) then days.judged_hours end), 0) as bigint
        ) as drive_hours_3d
    from slow
    inner join {{ ref('int_drive_days') }} as days
        on slow.drive_id = days.drive_id
        and days.day_utc < cast(slow.boundary_utc as date)
        and days.day_utc >= cast(slow.boundary_utc - interval 28 day as date)
    where days.judged_hours > 0
    group by slow.drive_id, slow.boundary_utc
),

-- drives that only share a host may do different jobs
members as (
    select
        observed.drive_id, observed.boundary_utc,
        days.drive_id as member_id,
        2 * sum(days.like_load_hours) > sum(days.slowdown_hours) as is_like
    from observed
    inner join {{ ref('int_drive_days') }} as days
        on observed.raid_group_id = days.raid_group_id
        and days.day_utc < cast(observed.boundary_utc as date)
        and days.day_utc >= cast(observed.boundary_utc - interval 28 day as date)
    where observed.is_group_guessed
    group by observed.drive_id, observed.boundary_utc, days.drive_id
),

jobs as (
    select drive_id, boundary_utc, 2 * count(case when is_like then 1 end) > count(*) as is_one_job
    from members
    group by drive_id, boundary_utc
),

-- slow hours in which maintenance was planned or its array worked, but for those in which it was slower than others at that work; which array that is, inventory says as of now
working as (
    select hours.subject_id as drive_id, boundaries.boundary_utc, count(*) as work_hours
    from {{ ref('int_slow_alerts__hours') }} as hours
    inner join {{ ref('int_boundaries') }} as boundaries
        on hours.hour_utc < boundaries.boundary_utc
        and hours.hour_utc >= boundaries.boundary_utc - interval 28 day
    where hours.subject_type = 'drive'
        and (hours.held_back_by is not null or hours.despite_work like 'work of %')
    group by hours.subject_id, boundaries.boundary_utc
)

select
    slow.drive_id, slow.boundary_utc, slow.is_monday,
    coalesce(described.kind, drives.declared_kind, 'unknown') as kind,
    observed.raid_group_id,
    described.model,
    observed.drive_hours_28d, observed.observed_days_28d, observed.reported_hours_28d, observed.drive_hours_3d,
    slow.slow_hours_28d, slow.slow_days_14d, slow.slow_hours_3d, slow.together_hours_28d, slow.tail_hours_caused_28d,
    slow.tail_hours_paired_28d, slow.last_slow_hour_utc, slow.load_ratio,
    coalesce(working.work_hours, 0) as work_hours_28d,
    coalesce(observed.is_group_guessed, false) and not coalesce(jobs.is_one_job, false) as has_unlike_peers
from slow
inner join observed on slow.drive_id = observed.drive_id and slow.boundary_utc = observed.boundary_utc
left join jobs on slow.drive_id = jobs.drive_id and slow.boundary_utc = jobs.boundary_utc
left join working on slow.drive_id = working.drive_id and slow.boundary_utc = working.boundary_utc
-- as inventory stood in the last hour before the boundary
left join {{ ref('int_drives__described') }} as described
    on slow.drive_id = described.drive_id
    and slow.boundary_utc > described.from_hour_utc
    and slow.boundary_utc <= described.to_hour_utc
left join {{ ref('int_drives') }} as drives on slow.drive_id = drives.drive_id
left join {{ ref('int_drives__standing') }} as standing on slow.drive_id = standing.drive_id
-- a drive that has gone needs no verdict
where not coalesce(drives.is_logical, false) and coalesce(standing.left_at > slow.boundary_utc, true)
