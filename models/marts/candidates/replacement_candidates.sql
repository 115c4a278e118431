{{ config(materialized='view') }}
-- Drives by what to do with each, and why, as of the last midnight; of drives that were slow in the 28 days before. Grain: drive_id.
with latest as (
    select max(boundary_utc) as boundary_utc from {{ ref('int_boundaries') }}
),

decisions as (
    select
        drive_id,
        max_by(verdict, decision_seq) as decision,
        max_by(decided_by, decision_seq) as decided_by,
        max_by(decided_at, decision_seq) as decided_at
    from {{ ref('fct_drive_decisions') }}
    where state in ('pending', 'standing')
    group by drive_id
),

judged as (
    select
        judged.*,
        decisions.decision,
        decisions.decided_by,
        decisions.decided_at,
        drives.host,
        drives.enclosure,
        drives.slot,
        drives.device,
        drives.capacity_bytes,
        {{ rounded_text('judged.own_tail_hours_28d', 1) }} as own_hours,
        {{ to_tenths('judged.own_tail_hours_28d / judged.cost_tail_hours') }} as swaps,
        {{ rounded_text('judged.cost_tail_hours', 1) }} as cost
    from {{ ref('int_drive_weeks__judged') }} as judged
    inner join latest on judged.boundary_utc = latest.boundary_utc
    left join {{ ref('dim_drives') }} as drives on judged.drive_id = drives.drive_id
    left join decisions on judged.drive_id = decisions.drive_id
    left join {{ ref('int_drives__standing') }} as standing on judged.drive_id = standing.drive_id
    where coalesce(standing.standing, 'data') = 'data'
),

worded as (
    select
        *,
        case
            when is_quiet then 'It has been quiet since ' || cast(cast(last_slow_hour_utc as date) as string) || '.'
            when is_watched and is_shared
                then 'It shared ' || cast(together_hours_28d as string) || ' of ' || {{ counted_noun('slow_hours_28d', 'slow hour') }}
                    || ' with other drives of its RAID group or host that became slow within a day of it: check what they share.'
            when replace_rule = 'constant'
                then 'It was slow in ' || cast(slow_hours_3d as string) || ' of the last ' || cast(drive_hours_3d as string) || ' hours and cost '
                    || own_hours || ' tail hours, ' || swaps || ' times a swap (' || cost || ').'
            when replace_rule = 'lasting'
                then 'It cost ' || own_hours || ' tail hours in 28 days, ' || swaps || ' times a swap (' || cost || '), and was slow on '
                    || cast(slow_days_14d as string) || ' of the last 14 days.'
            else 'It cost ' || own_hours || ' tail hours in 28 days; a swap costs ' || cost || '.'
        end
        || case
            when not is_quiet and not is_shared and pair_ratio > 0 and tail_hours_paired_28d > tail_hours_caused_28d
                then ' Half of ' || {{ counted_noun('tail_hours_paired_28d', 'hour') }} || ' that it shared with one drive of its RAID group counts: replace both.'
            else ''
        end
        || case
            when not is_quiet and day_ratio > 2
                then ' It reported ' || cast(drive_hours_28d as string) || ' hours on ' || {{ counted_noun('observed_days_28d', 'day') }}
                    || '; each day is judged by the hours it reported.'
            else ''
        end as why,
        case
            when verdict = 'replace' then ''
            when is_quiet then ' Its next slow hour brings it back onto the list.'
            when not is_watched then ' It is watched from {{ var("candidate_watch_hours") }} on.'
            when is_shared then ' Replace it once most of its slow hours are its own.'
            when not is_enough
                then ' Not yet: it must cost more than ' || {{ rounded_text(var('replace_evidence_cost_ratio') ~ ' * cost_tail_hours', 1) }} || '.'
            when not is_recent then ' Not yet: it was last slow on ' || cast(cast(last_slow_hour_utc as date) as string) || '.'
            else ' Not yet: it must be slow on {{ var("replace_evidence_days") }} of 14 days (so far ' || cast(slow_days_14d as string)
                || '). Earliest possible replace: '
                || cast(cast(boundary_utc + ({{ var("replace_evidence_days") }} - slow_days_14d) * interval 1 day as date) as string) || '.'
        end as what_is_missing
    from judged
)

select
    worded.drive_id,
    worded.boundary_utc,
    cast(row_number() over (
        order by
            case worded.verdict when 'replace' then 1 when 'check path' then 2 when 'watch' then 3 else 4 end asc,
            worded.slow_hours_28d desc,
            worded.drive_id asc
    ) as bigint) as candidate_rank,
    worded.kind,
    worded.raid_group_id,
    worded.host,
    worded.enclosure,
    worded.slot,
    worded.device,
    worded.model,
    worded.capacity_bytes,
    worded.own_tail_hours_28d,
    worded.cost_tail_hours,
    worded.verdict,
    worded.replace_rule,
    worded.why || worded.what_is_missing as verdict_reason,
    worded.tail_hours_caused_28d,
    worded.tail_hours_paired_28d,
    worded.slow_hours_28d,
    worded.slow_days_14d,
    worded.slow_hours_3d,
    worded.drive_hours_3d,
    worded.together_hours_28d,
    worded.drive_hours_28d,
    worded.last_slow_hour_utc,
    worded.decision,
    worded.decided_by,
    worded.decided_at
from worded
