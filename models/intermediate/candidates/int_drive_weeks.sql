{%- set heavy_hours = 24 %}{#- in 28 days at `imbalanced` times the I/Os of its peers: from them on a drive says whether such a load slows drives down -#}
{%- set heavy_drives = 10 %}{#- of a kind, least; and at least this share of them well in most of these hours: then it does not. Where it does, two of three were slow -#}
{%- set heavy_well_share = 0.8 %}
-- Facts known of each drive at a boundary, of drives with a slow hour in the 28 days before it. Grain: drive_id, boundary_utc.
with slow_weeks as (
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

observed_weeks as (
    select
        slow_weeks.drive_id, slow_weeks.boundary_utc,
        max_by(days.raid_group_id, cast(days.day_utc as string) || ' ' || days.raid_group_id) as raid_group_id,
        max_by(days.is_group_guessed, cast(days.day_utc as string) || ' ' || days.raid_group_id) as is_group_guessed,
        cast(sum(days.judged_hours) as bigint) as drive_hours_28d,
        count(distinct days.day_utc) as observed_days_28d,
        cast(sum(days.reported_hours) as bigint) as reported_hours_28d,
        cast(
            coalesce(sum(case when days.day_utc >= cast(slow_weeks.boundary_utc - interval 3 day as date) then days.judged_hours end), 0) as bigint
        ) as drive_hours_3d
    from slow_weeks
    inner join {{ ref('int_drive_days') }} as days
        on slow_weeks.drive_id = days.drive_id
        and days.day_utc < cast(slow_weeks.boundary_utc as date)
        and days.day_utc >= cast(slow_weeks.boundary_utc - interval 28 day as date)
    where days.judged_hours > 0
    group by slow_weeks.drive_id, slow_weeks.boundary_utc
),

-- drives that only share a host may do different jobs
members as (
    select
        observed_weeks.drive_id, observed_weeks.boundary_utc,
        days.drive_id as member_id,
        2 * sum(days.like_load_hours) > sum(days.slowdown_hours) as is_like
    from observed_weeks
    inner join {{ ref('int_drive_days') }} as days
        on observed_weeks.raid_group_id = days.raid_group_id
        and days.day_utc < cast(observed_weeks.boundary_utc as date)
        and days.day_utc >= cast(observed_weeks.boundary_utc - interval 28 day as date)
    where observed_weeks.is_group_guessed
    group by observed_weeks.drive_id, observed_weeks.boundary_utc, days.drive_id
),

jobs as (
    select
        drive_id, boundary_utc,
        2 * count(case when is_like then 1 end) > count(*) and bool_or(is_like and member_id = drive_id) as is_one_job
    from members
    group by drive_id, boundary_utc
),

-- where drives of a kind do much more than their peers and are well, load does not explain a slow one
heavy_drives as (
    select
        boundaries.boundary_utc, days.drive_id,
        2 * sum(days.heavy_slow_hours) <= sum(days.heavy_hours) as is_well
    from {{ ref('int_boundaries') }} as boundaries
    inner join {{ ref('int_drive_days') }} as days
        on days.day_utc < cast(boundaries.boundary_utc as date)
        and days.day_utc >= cast(boundaries.boundary_utc - interval 28 day as date)
    where days.heavy_hours > 0
    group by boundaries.boundary_utc, days.drive_id
    having sum(days.heavy_hours) >= {{ heavy_hours }}
),

heavy_kinds as (
    select
        heavy_drives.boundary_utc, described.kind,
        count(*) >= {{ heavy_drives }} and count(case when heavy_drives.is_well then 1 end) >= {{ heavy_well_share }} * count(*) as is_load_harmless
    from heavy_drives
    inner join {{ ref('int_drives__described') }} as described
        on heavy_drives.drive_id = described.drive_id
        and heavy_drives.boundary_utc > described.from_hour_utc
        and heavy_drives.boundary_utc <= described.to_hour_utc
    group by heavy_drives.boundary_utc, described.kind
),

-- slow hours in which maintenance was planned or its array worked, but for those in which it was slower than others at that work; which array that is, inventory says as of now
weeks_of_work as (
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
    slow_weeks.drive_id, slow_weeks.boundary_utc, slow_weeks.is_monday,
    coalesce(described.kind, drives.declared_kind, 'unknown') as kind,
    observed_weeks.raid_group_id,
    described.model,
    observed_weeks.drive_hours_28d, observed_weeks.observed_days_28d, observed_weeks.reported_hours_28d, observed_weeks.drive_hours_3d,
    slow_weeks.slow_hours_28d, slow_weeks.slow_days_14d, slow_weeks.slow_hours_3d, slow_weeks.together_hours_28d, slow_weeks.tail_hours_caused_28d,
    slow_weeks.tail_hours_paired_28d, slow_weeks.last_slow_hour_utc, slow_weeks.load_ratio,
    coalesce(weeks_of_work.work_hours, 0) as work_hours_28d,
    coalesce(observed_weeks.is_group_guessed, false) and not coalesce(jobs.is_one_job, false) as has_unlike_peers,
    coalesce(heavy_kinds.is_load_harmless, false) as is_load_harmless
from slow_weeks
inner join observed_weeks on slow_weeks.drive_id = observed_weeks.drive_id and slow_weeks.boundary_utc = observed_weeks.boundary_utc
left join jobs on slow_weeks.drive_id = jobs.drive_id and slow_weeks.boundary_utc = jobs.boundary_utc
left join weeks_of_work on slow_weeks.drive_id = weeks_of_work.drive_id and slow_weeks.boundary_utc = weeks_of_work.boundary_utc
-- as inventory stood in the last hour before the boundary
left join {{ ref('int_drives__described') }} as described
    on slow_weeks.drive_id = described.drive_id
    and slow_weeks.boundary_utc > described.from_hour_utc
    and slow_weeks.boundary_utc <= described.to_hour_utc
left join heavy_kinds on slow_weeks.boundary_utc = heavy_kinds.boundary_utc and described.kind = heavy_kinds.kind
left join {{ ref('int_drives') }} as drives on slow_weeks.drive_id = drives.drive_id
left join {{ ref('int_drives__standing') }} as standing on slow_weeks.drive_id = standing.drive_id
-- a drive that has gone needs no verdict
where not coalesce(drives.is_logical, false) and coalesce(standing.left_at > slow_weeks.boundary_utc, true)
