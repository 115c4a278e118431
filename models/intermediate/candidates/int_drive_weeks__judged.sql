-- What was said of each drive at a week boundary by what was known then, and by which rule, of drives that had been slow in the 28 days before or had
-- caused tail hours; so that what is said now and what came of what was said before are one computation. Grain: drive_id, boundary_utc.
with drive_weeks as (
    select
        drive_weeks.*,
        coalesce(drives.capacity_bytes, {{ var('replace_unknown_capacity_bytes') }})
        / cast({{ var('replace_rebuild_bytes_per_second') }} as double) / 3600 as rebuild_hours
    from {{ ref('int_drive_weeks__intervals') }} as drive_weeks
    left join {{ ref('int_drives') }} as drives on drive_weeks.drive_id = drives.drive_id
    where drive_weeks.slow_hours_28d > 0 or drive_weeks.own_tail_hours > 0
),

priced as (
    select
        *,
        rebuild_hours * {{ var('replace_rebuild_tail_hours') }}
        + {{ var('replace_labour_hours') }} * {{ var('replace_labour_tail_hours') }}
        + {{ var('replace_spare_tail_hours') }} as cost_tail_hours
    from drive_weeks
),

tried as (
    select
        *,
        slow_hours_28d > 0 as is_slow_28d,
        expected_tail_hours >= {{ var('candidate_watch_hours') }} as is_watched,
        2 * together_hours_28d > slow_hours_28d as is_shared,
        coalesce(expected_low > cost_tail_hours, false) as is_expected,
        -- the three parts of the rule of evidence
        tail_hours_caused_28d >= {{ var('replace_evidence_cost_ratio') }} * cost_tail_hours as is_enough,
        coalesce(latest_tail_hour_utc >= boundary_utc - interval {{ var('replace_evidence_recent_days') }} day, false) as is_recent,
        tail_weeks_28d >= {{ var('replace_evidence_weeks') }}
        or coalesce(recur_hours <= {{ var('replace_evidence_recur_hours') }}, false) as is_lasting
    from priced
)

select
    *,
    case
        when not is_slow_28d then 'leave'
        when is_shared and is_watched then 'check path'
        when is_expected then 'replace'
        when is_enough and is_recent and is_lasting and not is_shared then 'replace'
        when is_watched then 'watch'
        else 'leave'
    end as verdict,
    case
        when not is_slow_28d or (is_shared and is_watched) then 'none'
        when is_expected then 'expectation'
        when is_enough and is_recent and is_lasting and not is_shared then 'evidence'
        else 'none'
    end as replace_rule
from tried
