{{ config(materialized='view') }}
-- Drives by what to do with each, and why, as of the last midnight; of drives that were slow in the 28 days before. A drive that went silent keeps the verdict
-- of the last day that it reported. Grain: drive_id.
with latest_boundary as (
    select max(boundary_utc) as boundary_utc from {{ ref('int_boundaries') }}
),

silent_drives as (
    select standing.drive_id, standing.last_hour_utc, boundaries.boundary_utc
    from {{ ref('int_drives__standing') }} as standing
    inner join {{ ref('int_boundaries') }} as boundaries
        on standing.is_expected and boundaries.boundary_utc = cast(date_trunc('day', standing.last_hour_utc) as timestamp) + interval 1 day
    inner join latest_boundary on boundaries.boundary_utc < latest_boundary.boundary_utc and boundaries.boundary_utc >= latest_boundary.boundary_utc - interval 28 day
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

-- since when every verdict on it is to replace it
risen_drives as (
    select drive_id, min(boundary_utc) as replace_since_utc
    from (
        select drive_id, boundary_utc, verdict, max(case when verdict <> 'replace' then boundary_utc end) over (partition by drive_id) as last_other_utc
        from {{ ref('int_drive_weeks__judged') }}
    ) as verdicts
    where verdict = 'replace' and coalesce(boundary_utc > last_other_utc, true)
    group by drive_id
),

judged as (
    select
        judged.*,
        case when judged.verdict = 'replace' then coalesce(risen_drives.replace_since_utc, judged.boundary_utc) end as replace_since_utc,
        decisions.decision, decisions.decided_by, decisions.decided_at,
        drives.host, drives.enclosure, drives.slot, drives.device, drives.capacity_bytes,
        silent_drives.last_hour_utc as silent_since_utc,
        case
            when judged.pair_ratio > 0 and judged.tail_hours_paired_28d > judged.tail_hours_caused_28d and not judged.is_quiet and not judged.is_shared
                then case when judged.verdict = 'replace' then 'replace' else 'wait' end
        end as paired,
        {{ rounded_text('judged.own_tail_hours_28d', 1) }} as own_hours,
        {{ to_tenths('judged.own_tail_hours_28d / judged.cost_tail_hours') }} as swaps,
        {{ rounded_text('judged.cost_tail_hours', 1) }} as cost
    from {{ ref('int_drive_weeks__judged') }} as judged
    cross join latest_boundary
    left join silent_drives on judged.drive_id = silent_drives.drive_id
    left join {{ ref('dim_drives') }} as drives on judged.drive_id = drives.drive_id
    left join decisions on judged.drive_id = decisions.drive_id
    left join risen_drives on judged.drive_id = risen_drives.drive_id
    left join {{ ref('int_drives__standing') }} as standing on judged.drive_id = standing.drive_id
    where coalesce(standing.standing, 'data') = 'data'
        and judged.boundary_utc = coalesce(silent_drives.boundary_utc, latest_boundary.boundary_utc)
),

worded_drives as (
    select
        *,
        case
            when is_quiet
                then 'It was last slow on ' || cast(cast(last_slow_hour_utc as date) as string) || '. After 14 quiet days a drive leaves the list.'
            when is_watched and is_shared
                then 'It shared ' || cast(together_hours_28d as string) || ' of ' || {{ counted_noun('slow_hours_28d', 'slow hour') }}
                    || ' with other drives of its RAID group'
                    || case when host is not null then ' or host' when enclosure is not null then ' or enclosure' else '' end
                    || case
                        when 10 * slow_hours_28d >= 9 * drive_hours_28d and drive_hours_28d >= 72
                            then ' that were slow with it. In these 28 days it has hardly been well: unless they are of another kind than their peers, check what they share.'
                        else ' that became slow within a day of it: check what they share.'
                    end
            when replace_rule = 'constant'
                then 'It was slow in ' || cast(slow_hours_3d as string) || ' of ' || cast(drive_hours_3d as string)
                    || ' hours of the last three days and cost ' || own_hours || ' tail hours, ' || swaps || ' times a swap (' || cost || ').'
            when replace_rule = 'lasting'
                then 'It cost ' || own_hours || ' tail hours in 28 days, ' || swaps || ' times a swap (' || cost || '), and was slow on '
                    || cast(slow_days_14d as string) || ' of the last 14 days.'
            else 'It cost ' || own_hours || ' tail hours in 28 days; a swap costs ' || cost || '.'
                || case
                    when 2 * (tail_hours_caused_28d + tail_hours_paired_28d) < slow_hours_28d and 2 * together_hours_28d <= slow_hours_28d
                        then ' In most of its ' || {{ counted_noun('slow_hours_28d', 'slow hour') }} || ' its RAID group would have waited without it, too.'
                    else ''
                end
        end
        || case
            when paired is not null
                then ' Half of ' || {{ counted_noun('tail_hours_paired_28d', 'hour') }} || ' that it made with one other drive of its RAID group counts'
                    || case when paired = 'replace' and count(case when paired = 'replace' then 1 end) over (partition by raid_group_id) = 2
                            then ': replace both.'
                        else '.'
                    end
            else ''
        end
        || case
            when is_at_work and not is_quiet
                then ' In ' || cast(work_hours_28d as string) || ' of ' || {{ counted_noun('slow_hours_28d', 'slow hour') }}
                    || ' its array worked or maintenance was planned, which slows drives down.'
            else ''
        end
        || case when load_ratio is not null and not is_quiet then ' Its load was ' || {{ load_text('load_ratio') }} || ' times that of its peers.' else '' end
        || case
            when load_ratio >= {{ var('imbalanced') }} and not is_overloaded and not is_quiet
                then ' At such a load most others of its kind are well.'
            else ''
        end
        || case
            when not is_quiet and day_ratio > 1
                then ' It reported ' || {{ counted_noun('reported_hours_28d', 'hour') }} || ' on ' || {{ counted_noun('observed_days_28d', 'day') }}
                    || ': the cost is scaled to whole days.'
            else ''
        end as why,
        case
            when verdict = 'replace' or is_quiet then ''
            when not is_watched then ' It is watched from {{ var("candidate_watch_hours") }} on.'
            when is_shared then ' Its cost counts once most of its slow hours are its own.'
            when not is_enough
                then ' Not yet: it must cost more than ' || {{ rounded_text(var('replace_evidence_cost_ratio') ~ ' * cost_tail_hours', 1) }}
                    || case
                        when observed_days_28d < {{ var('replace_evidence_days') }} then ', and there is only ' || {{ counted_noun('observed_days_28d', 'day') }} || ' of data'
                        else ''
                    end
                    || '.'
            when has_unlike_peers
                then ' Not yet: its RAID group is a guess, all drives of its host, and its load is not that of most of them: say with `drivetail map` which are one array.'
            when is_at_work then ' Not yet: most of its slow hours must be without that.'
            when is_overloaded then ' Not yet: that is work of its own. Move its load first; `drivetail confirm` tells whether it is slow by itself.'
            when not is_recent then ' Not yet: it must be slow in the last {{ var("replace_evidence_recent_days") }} days (last on '
                || cast(cast(last_slow_hour_utc as date) as string) || ').'
            else ' Not yet: it must be slow on {{ var("replace_evidence_days") }} of 14 days (so far ' || cast(slow_days_14d as string)
                || ') or in nearly all hours of three (so far ' || cast(slow_hours_3d as string) || '). Earliest possible replace: '
                || cast(cast(boundary_utc + least_days * interval 1 day as date) as string) || '.'
        end as what_is_missing
    from judged
)

select
    worded_drives.drive_id, worded_drives.boundary_utc,
    cast(row_number() over (
        order by
            case worded_drives.verdict when 'replace' then 1 when 'check path' then 2 when 'watch' then 3 else 4 end asc,
            worded_drives.slow_hours_28d desc,
            worded_drives.drive_id asc
    ) as bigint) as candidate_rank,
    worded_drives.kind, worded_drives.raid_group_id, worded_drives.host, worded_drives.enclosure, worded_drives.slot, worded_drives.device, worded_drives.model, worded_drives.capacity_bytes,
    worded_drives.own_tail_hours_28d, worded_drives.cost_tail_hours, worded_drives.verdict, worded_drives.replace_rule, worded_drives.replace_since_utc,
    worded_drives.why || worded_drives.what_is_missing
    || case when worded_drives.silent_since_utc is not null then ' It has sent nothing since ' || cast(cast(worded_drives.silent_since_utc as date) as string) || '.' else '' end as verdict_reason,
    worded_drives.tail_hours_caused_28d, worded_drives.tail_hours_paired_28d, worded_drives.slow_hours_28d, worded_drives.slow_days_14d, worded_drives.slow_hours_3d,
    worded_drives.drive_hours_3d, worded_drives.together_hours_28d, worded_drives.drive_hours_28d, worded_drives.last_slow_hour_utc, worded_drives.decision, worded_drives.decided_by,
    worded_drives.decided_at
from worded_drives
