{{ config(materialized='view') }}
-- Actions of this week, drive by drive, with reasons: replacement candidates, open alerts, the costliest drives of the last whole week and replacements that
-- were decided, reconciled. Grain: drive_id.
with last_week as (
    select max(week_utc) as week_utc from {{ ref('dim_weeks') }} where is_complete
),

-- of an acute and a chronic alert of a drive, keep the more urgent
alerts as (
    select *
    from (
        select
            own.*,
            shared.subject_type as shared_type,
            shared.subject_id as shared_id,
            shared.drive_count as shared_drive_count,
            row_number() over (
                partition by own.subject_id order by case own.reason when 'acute' then 1 else 2 end asc, own.raised_at desc
            ) as alert_rank
        from {{ ref('fct_slow_alerts') }} as own
        left join {{ ref('fct_slow_alerts') }} as shared on own.part_of = shared.alert_id
        where own.subject_type = 'drive'
            and (own.cleared_at is null or (shared.alert_id is not null and shared.cleared_at is null))
    ) as open_alerts
    where alert_rank = 1
),

past_alerts as (
    select subject_id as drive_id, max(cleared_at) as last_cleared_at
    from {{ ref('fct_slow_alerts') }}
    where subject_type = 'drive'
    group by subject_id
),

costs as (
    select weekly.*
    from {{ ref('fct_weekly_drives') }} as weekly
    inner join last_week on weekly.week_utc = last_week.week_utc
),

decisions as (
    select *
    from (
        select
            *,
            row_number() over (partition by drive_id order by decision_seq desc) as decision_rank,
            max(case when state = 'pending' then 1 else 0 end) over (partition by drive_id) = 1 as is_pending
        from {{ ref('fct_drive_decisions') }}
        where state in ('pending', 'standing')
    ) as open_decisions
    where decision_rank = 1
),

boundary as (
    select max(boundary_utc) as boundary_utc from {{ ref('int_boundaries') }}
),

-- every list is read once: each is views over views, planned again for each reference
listed_drives as (
    select
        coalesce(candidates.drive_id, alerts.subject_id, costs.drive_id, decisions.drive_id) as drive_id,
        candidates.raid_group_id as candidate_raid_group_id,
        candidates.candidate_rank, candidates.boundary_utc, candidates.verdict, candidates.verdict_reason, candidates.own_tail_hours_28d,
        candidates.tail_hours_caused_28d, candidates.slow_hours_28d, candidates.cost_tail_hours,
        alerts.alert_id,
        alerts.reason as alert_reason,
        alerts.first_slow_hour_utc as alert_since_utc,
        alerts.raised_at,
        alerts.slow_hours as alert_slow_hours,
        alerts.imbalanced_hours, alerts.load_known_hours, alerts.load_ratio,
        alerts.load_known_hours - alerts.imbalanced_hours as like_hours,
        alerts.median_slowdown, alerts.shared_type, alerts.shared_id, alerts.shared_drive_count,
        costs.cost_rank,
        coalesce(costs.tail_hours, 0) as week_tail_hours,
        coalesce(costs.tail_hours > 0 and costs.cost_rank <= {{ var('action_costliest_drives') }}, false) as is_costliest,
        coalesce(decisions.is_pending, false) as is_pending,
        decisions.verdict as decision,
        decisions.decided_by, decisions.decided_at, decisions.ticket, decisions.until_utc,
        decisions.is_past_until as is_overdue
    from {{ ref('replacement_candidates') }} as candidates
    full join alerts on candidates.drive_id = alerts.subject_id
    full join costs on coalesce(candidates.drive_id, alerts.subject_id) = costs.drive_id
    full join decisions on coalesce(candidates.drive_id, alerts.subject_id, costs.drive_id) = decisions.drive_id
),

joined_drives as (
    select
        listed_drives.*,
        drives.kind,
        coalesce(listed_drives.candidate_raid_group_id, drives.current_raid_group_id) as raid_group_id,
        drives.host, drives.enclosure, drives.slot, drives.device, drives.model, drives.capacity_bytes,
        recent.slow_since_utc, past_alerts.last_cleared_at, last_week.week_utc,
        floors.held_back_by, floors.floor_us,
        standing.standing, standing.role, standing.replaced_at,
        coalesce(standing.standing in ('replaced', 'gone'), false) as has_left,
        boundary.boundary_utc as candidates_boundary_utc,
        coalesce(case when listed_drives.shared_type <> 'drive' then listed_drives.shared_type end, incidents.place_type) as place_type,
        case when listed_drives.shared_type <> 'drive' then listed_drives.shared_id else incidents.place_id end as place_id,
        -- another place than the alert's only where it lies within that
        case when incidents.place_type <> 'raid_group' or coalesce(listed_drives.shared_type, 'drive') = 'drive' then incidents.shared_hours end as shared_hours,
        incidents.slow_hours as incident_slow_hours,
        recent.cause as own_cause,
        recent.evidence as own_evidence
    from listed_drives
    cross join last_week
    cross join boundary
    left join past_alerts on listed_drives.drive_id = past_alerts.drive_id
    left join {{ ref('int_drives__below_floor') }} as floors on listed_drives.drive_id = floors.drive_id
    left join {{ ref('int_drives__recent_slowness') }} as recent on listed_drives.drive_id = recent.drive_id
    left join {{ ref('int_drives__standing') }} as standing on listed_drives.drive_id = standing.drive_id
    left join {{ ref('int_drives__incidents') }} as incidents on listed_drives.drive_id = incidents.drive_id
    left join {{ ref('dim_drives') }} as drives on listed_drives.drive_id = drives.drive_id
    where coalesce(listed_drives.verdict <> 'leave', false) or listed_drives.alert_id is not null or listed_drives.is_costliest or listed_drives.is_pending
),

judged_drives as (
    select
        *,
        case
            when has_left or held_back_by is not null then 'none'
            when verdict in ('replace', 'check path') then verdict
            when shared_type <> 'drive' then 'check path'
            when alert_id is not null then 'inspect'
            when verdict = 'watch' then 'watch'
            else 'none'
        end as action_undecided,
        -- a `watch` decision expires on Monday
        not has_left and coalesce(
            decision in ('replace', 'dismiss') or decided_at >= coalesce(cast(date_trunc('week', boundary_utc) as timestamp), decided_at), false
        ) as is_decided,
        place_id is not null and count(*) over (partition by place_type, place_id) >= 2 as is_with_others
    from joined_drives
),

worded_actions as (
    select
        *,
        case when is_with_others then place_type || ' ' || place_id end as incident_id,
        -- a drive that is slow with others is so for what they share, on every list and chart
        case when action_undecided = 'check path' or is_with_others then 'neighbours' else own_cause end as cause,
        case when not is_decided then action_undecided when decision = 'dismiss' then 'none' else decision end as action,
        decided_by || ' decided on ' || cast(cast(decided_at as date) as string)
        || case decision
            when 'replace' then ' to replace it; it has not been replaced yet'
            when 'dismiss' then ' that it needs nobody'
            else ' to watch it'
        end
        || case when is_overdue and decision = 'replace' then ' and was due by ' || cast(cast(until_utc as date) as string) else '' end
        || case when ticket is not null then ' (ticket ' || ticket || ')' else '' end
        || '.' as why_decided,
        case
            when replaced_at is not null then 'It was replaced on ' || cast(cast(replaced_at as date) as string) || '.'
            when has_left then 'It is gone: inventory has it nowhere any more.'
            when held_back_by is not null
                then 'None of its slow hours of the last {{ var("alert_floor_days") }} days reached ' || cast(cast(floor_us as bigint) as string) || ' us, the floor of concern of its kind.'
            when action_undecided = verdict then verdict_reason
            when action_undecided = 'check path'
                then 'It became slow with ' || {{ counted_noun('shared_drive_count - 1', 'other drive') }} || ' of ' || shared_type || ' ' || shared_id
                    || ': look at what they share.'
            when alert_reason = 'chronic'
                then 'It took at least {{ var("chronic_slowdown") }} times as long as its peers in ' || {{ counted_noun('alert_slow_hours', 'hour') }}
                    || ' of four weeks, most of those it reported. '
                    || 'Compare its firmware, model and workload with those of its peers.'
            when 2 * imbalanced_hours >= alert_slow_hours
                then 'In ' || cast(imbalanced_hours as string) || ' of ' || {{ counted_noun('alert_slow_hours', 'slow hour') }}
                    || ' it did far more I/O, or far larger, than its peers: look at its workload first.'
            when alert_id is not null
                then 'It was slow in ' || {{ counted_noun('alert_slow_hours', 'hour') }} || ', ' || {{ rounded_text('median_slowdown', 1) }} || ' times its peers. '
                    || case
                        when 2 * like_hours <= alert_slow_hours
                            then 'Its load is ' || case
                                    when load_known_hours > 0 then 'known to be that of its peers in only ' || cast(like_hours as string) || ' of them'
                                    else 'not known'
                                end
                                || ': compare it first, then reseat the drive and check the cabling.'
                        else 'At ' || {{ load_text('load_ratio') }} || ' times its peers'' load'
                            || case when like_hours < alert_slow_hours then ' in ' || cast(like_hours as string) || ' of them' else '' end
                            || case when load_ratio < 0.25 then ': has it another job? If not,' else ', so the drive or its path is at fault:' end
                            || ' reseat it and check the cabling.'
                    end
            when verdict is not null then verdict_reason
            when standing = 'other role' and role <> 'spare' then 'It is a parity drive of its RAID group now.'
            when standing = 'other role' then 'It has left its RAID group (removed or now a spare).'
            when candidates_boundary_utc is null then 'It has no verdict yet: no day is over.'
            else 'Nothing asks for an action: it has neither a verdict nor an open alert.'
        end as why_undecided,
        -- why it is on one list and not on another
        case
            when alert_id is not null then ''
            when last_cleared_at is not null then 'No open alert: the last one ended on ' || cast(cast(last_cleared_at as date) as string) || '. '
            else 'No open alert. '
        end
        || case
            when verdict <> 'leave' then ''
            when verdict = 'leave' and (action_undecided <> 'none' or is_decided) then 'No candidate: ' || verdict_reason || ' '
            when verdict = 'leave' then 'No candidate. '
            when candidates_boundary_utc is null then 'No candidate: no day is over yet. '
            when standing = 'replaced' then 'No candidate: it was replaced. '
            when standing = 'gone' then 'No candidate: it is gone. '
            when standing = 'other role' then 'No candidate: it is no data drive now. '
            when slow_since_utc is null then 'No candidate: it was not slow in the last 28 days. '
            when slow_since_utc >= candidates_boundary_utc
                then 'No candidate: it became slow after ' || cast(cast(candidates_boundary_utc as date) as string) || '. '
            else 'No candidate. '
        end
        || case
            when is_costliest then ''
            when week_utc is null then 'Not among the costliest of a week: no week is over yet.'
            when week_tail_hours = 0 then 'Not among the costliest of the last whole week: no tail hour.'
            else 'Not among the costliest of the last whole week: ' || {{ counted_noun('week_tail_hours', 'tail hour') }} || ', place '
                || cast(cost_rank as string) || '.'
        end as lists_reason
    from judged_drives
),

ranked_actions as (
    select
        *,
        cast(row_number() over (
            order by
                case action when 'replace' then 1 when 'check path' then 2 when 'inspect' then 3 when 'watch' then 4 else 5 end asc,
                candidate_rank asc nulls last,
                raised_at desc nulls last,
                cost_rank asc nulls last,
                drive_id asc
        ) as bigint) as action_rank
    from worded_actions
)

select
    drive_id, action_rank,
    min(action_rank) over (partition by coalesce(incident_id, drive_id)) as incident_rank,
    action,
    action in ('replace', 'check path', 'inspect') as needs_person,
    case when is_decided then why_decided else why_undecided end as why,
    action_undecided, why_undecided, kind, raid_group_id, host, enclosure, slot, device, model, capacity_bytes,
    -- an alert goes on while the drive comes back, and may have begun before the last 28 days
    coalesce(case when action = 'inspect' or alert_reason = 'acute' then alert_since_utc end, slow_since_utc, alert_since_utc) as since_utc,
    own_tail_hours_28d, tail_hours_caused_28d, slow_hours_28d, cost_tail_hours, verdict,
    alert_id is not null as has_open_alert,
    alert_reason, incident_id, cause,
    case
        when is_with_others and shared_hours is not null
            then 'slow in ' || cast(shared_hours as string) || ' of ' || {{ counted_noun('incident_slow_hours', 'hour') }} || ' with other drives of it'
        when cause = own_cause then own_evidence
    end as cause_evidence,
    is_costliest, week_utc,
    cast(week_tail_hours as bigint) as week_tail_hours,
    cost_rank, decision, decided_by, decided_at, ticket,
    nullif(trim(lists_reason), '') as lists_reason,
    held_back_by
from ranked_actions
