{%- set pair_share = 0.5 %}{#- share of slow hours (3 or 28 days) from which a drive is watched, and charged half of what it shares with one other. Two that are rarely slow share a cause -#}
{%- set onset_share = 0.9 %}{#- share of slow hours of the last three days, and -#}
{%- set onset_hours = 64 %}{#- least slow hours, from which a drive is slow for good. A spell of two and a half days has fewer -#}
{%- set thin_ratio = 2 %}{#- telemetry of less than half of the hours of its days stands for whole days: a first day that is cut or a lost hour costs nothing that anybody saw -#}
{%- set beyond_load = 4 %}{#- times its peers' I/Os, from which other drives' load says nothing of a drive's -#}
{%- set quiet_days = 14 %}{#- without a slow hour: it leaves the list -#}
-- Verdict on each drive at a boundary by the facts known then, and by which rule. Grain: drive_id, boundary_utc.
with drive_weeks as (
    select
        drive_weeks.*,
        outcomes.tail_hours_caused_after, outcomes.tail_hours_paired_after,
        coalesce(drives.capacity_bytes, {{ var('replace_unknown_capacity_bytes') }})
        / cast({{ var('replace_rebuild_bytes_per_second') }} as double) / 3600 as rebuild_hours,
        case
            when 24 * drive_weeks.observed_days_28d > {{ thin_ratio }} * drive_weeks.reported_hours_28d
                then cast(24 * drive_weeks.observed_days_28d as double) / drive_weeks.reported_hours_28d
            else 1.0
        end as day_ratio,
        cast(
            case
                when drive_weeks.slow_hours_28d >= {{ pair_share }} * drive_weeks.drive_hours_28d then 0.5
                when drive_weeks.slow_hours_3d >= {{ pair_share }} * drive_weeks.drive_hours_3d and drive_weeks.slow_hours_3d > 0 then 0.5
                else 0
            end as double
        ) as pair_ratio
    from {{ ref('int_drive_weeks') }} as drive_weeks
    left join {{ ref('int_drive_weeks__outcomes') }} as outcomes
        on drive_weeks.drive_id = outcomes.drive_id and drive_weeks.boundary_utc = outcomes.boundary_utc
    left join {{ ref('int_drives') }} as drives on drive_weeks.drive_id = drives.drive_id
),

priced_weeks as (
    select
        *,
        (tail_hours_caused_28d + pair_ratio * tail_hours_paired_28d) * day_ratio as own_tail_hours_28d,
        case
            when tail_hours_caused_after is not null
                then least((tail_hours_caused_after + pair_ratio * tail_hours_paired_after) * day_ratio, 28 * 24.0)
        end as own_tail_hours_after,
        rebuild_hours * {{ var('replace_rebuild_tail_hours') }}
        + {{ var('replace_labour_hours') }} * {{ var('replace_labour_tail_hours') }}
        + {{ var('replace_spare_tail_hours') }} as cost_tail_hours
    from drive_weeks
),

tried_weeks as (
    select
        *,
        last_slow_hour_utc < boundary_utc - interval {{ quiet_days }} day as is_quiet,
        -- a drive that is slow most of the time costs nothing of its own where several others of its RAID group are
        own_tail_hours_28d >= {{ var('candidate_watch_hours') }}
        or together_hours_28d >= {{ var('candidate_watch_hours') }}
        or (pair_ratio > 0 and slow_hours_28d >= {{ var('candidate_watch_hours') }}) as is_watched,
        2 * together_hours_28d > slow_hours_28d as is_shared,
        coalesce(load_ratio >= case when is_load_harmless then {{ beyond_load }} else {{ var('imbalanced') }} end, false) as is_overloaded,
        coalesce(2 * work_hours_28d > slow_hours_28d, false) as is_at_work,
        -- the parts of the rule
        own_tail_hours_28d > {{ var('replace_evidence_cost_ratio') }} * cost_tail_hours as is_enough,
        last_slow_hour_utc >= boundary_utc - interval {{ var('replace_evidence_recent_days') }} day as is_recent,
        slow_days_14d >= {{ var('replace_evidence_days') }} as is_lasting,
        slow_hours_3d >= {{ onset_share }} * drive_hours_3d and slow_hours_3d >= {{ onset_hours }} as is_constant,
        -- a day adds one slow day, and 24 slow hours at most
        least(
            {{ var('replace_evidence_days') }} - slow_days_14d,
            case when slow_hours_3d >= {{ onset_hours - 24 }} then 1 when slow_hours_3d >= {{ onset_hours - 48 }} then 2 else 3 end
        ) as least_days
    from priced_weeks
)

select
    *,
    case
        when is_quiet or not is_watched then 'leave'
        when is_shared then 'check path'
        when not (coalesce(has_unlike_peers, false) or is_overloaded or is_at_work) and is_enough and is_recent and (is_lasting or is_constant) then 'replace'
        else 'watch'
    end as verdict,
    case
        when is_quiet or not is_watched or is_shared or not is_enough or not is_recent or has_unlike_peers or is_overloaded or is_at_work
            then 'none'
        when is_lasting then 'lasting'
        when is_constant then 'constant'
        else 'none'
    end as replace_rule
from tried_weeks
