-- Drives by what replacing each is expected to avoid in the next 28 days less what it costs, as of the last week boundary; of drives that were
-- slow in the 28 days before or caused tail hours. Grain: drive_id.
with latest as (
    select max(boundary_utc) as boundary_utc from {{ ref('int_drive_weeks') }}
),

decisions as (
    select drive_id, max(decision_seq) as decision_seq
    from {{ ref('fct_drive_decisions') }}
    where state in ('pending', 'standing')
    group by drive_id
),

-- where inventory had it last; a drive that no inventory places serves data where it reports
places as (
    select
        segments.drive_id,
        max_by(segments.role, segments.from_hour_utc) as role,
        max(segments.to_hour_utc) as to_hour_utc
    from {{ ref('int_drives__segments') }} as segments
    inner join {{ ref('publication') }} as publication on segments.from_hour_utc <= publication.last_hour_utc
    where segments.is_believed
    group by segments.drive_id
),

costed as (
    select
        drive_weeks.*,
        intervals.training_drive_weeks,
        intervals.outcome_count,
        intervals.expected_tail_hours,
        intervals.expected_low,
        intervals.expected_high,
        intervals.tail_hours_low,
        intervals.tail_hours_high,
        coalesce(drives.capacity_bytes, {{ var('replace_unknown_capacity_bytes') }})
        / cast({{ var('replace_rebuild_bytes_per_second') }} as double) / 3600 as rebuild_hours,
        decisions.decision_seq
    from {{ ref('int_drive_weeks') }} as drive_weeks
    inner join latest on drive_weeks.boundary_utc = latest.boundary_utc
    inner join {{ ref('int_drive_weeks__intervals') }} as intervals
        on drive_weeks.drive_id = intervals.drive_id and drive_weeks.boundary_utc = intervals.boundary_utc
    left join {{ ref('dim_drives') }} as drives on drive_weeks.drive_id = drives.drive_id
    left join decisions on drive_weeks.drive_id = decisions.drive_id
    left join places on drive_weeks.drive_id = places.drive_id
    left join {{ ref('int_drives__replaced') }} as replaced on drive_weeks.drive_id = replaced.drive_id
    cross join {{ ref('publication') }} as publication
    where (drive_weeks.slow_hours_28d > 0 or drive_weeks.own_tail_hours > 0)
        and replaced.drive_id is null
        -- a drive that reports after the hour in which its period ended has not gone
        and coalesce(
            case when places.to_hour_utc > publication.last_hour_utc then places.role = 'data' else places.to_hour_utc < drives.last_hour_utc end,
            true
        )
),

priced as (
    select
        *,
        rebuild_hours * {{ var('replace_rebuild_tail_hours') }}
        + {{ var('replace_labour_hours') }} * {{ var('replace_labour_tail_hours') }}
        + {{ var('replace_spare_tail_hours') }} as cost_tail_hours
    from costed
)

select
    priced.drive_id,
    priced.boundary_utc,
    cast(row_number() over (order by priced.expected_tail_hours - priced.cost_tail_hours desc, priced.drive_id asc) as bigint) as candidate_rank,
    priced.kind,
    priced.raid_group_id,
    priced.model,
    priced.age_year,
    priced.expected_tail_hours,
    priced.expected_low,
    priced.expected_high,
    priced.tail_hours_low,
    priced.tail_hours_high,
    priced.rebuild_hours,
    priced.cost_tail_hours,
    priced.expected_tail_hours - priced.cost_tail_hours as net_tail_hours,
    case
        when priced.expected_tail_hours >= {{ var('candidate_watch_hours') }} and 2 * priced.together_hours_28d > priced.slow_hours_28d
            then 'check path'
        when priced.expected_low > priced.cost_tail_hours then 'replace'
        when priced.expected_tail_hours >= {{ var('candidate_watch_hours') }} then 'watch'
        else 'leave'
    end as verdict,
    priced.tail_hours_caused_28d,
    priced.tail_weeks_28d,
    priced.latest_tail_hour_utc,
    priced.slow_hours_28d,
    priced.recurrence_count_28d,
    priced.together_hours_28d,
    priced.chronic_hours_28d,
    priced.drive_hours_28d,
    priced.unplug_count,
    priced.wait_hours,
    priced.recur_hours,
    priced.training_drive_weeks,
    priced.outcome_count,
    decisions.verdict as decision,
    decisions.decided_by,
    decisions.decided_at
from priced
left join {{ ref('fct_drive_decisions') }} as decisions on priced.decision_seq = decisions.decision_seq
