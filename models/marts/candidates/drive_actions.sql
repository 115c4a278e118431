{{ config(materialized='view') }}
-- What to do this week, drive by drive, and why: replacement candidates, open alerts, the costliest drives of the last whole week and replacements that
-- were decided, reconciled. Grain: drive_id.
with last_week as (
    select max(week_utc) as week_utc from {{ ref('dim_weeks') }} where is_complete
),

candidates as (
    select * from {{ ref('replacement_candidates') }}
),

-- of a drive that is slow and chronic, the alert that is sooner to look at
alerts as (
    select
        own.*,
        shared.subject_type as shared_type,
        shared.subject_id as shared_id,
        shared.drive_count as shared_drive_count,
        row_number() over (
            partition by own.subject_id order by case own.reason when 'acute' then 1 else 2 end asc, own.raised_at desc
        ) as alert_place
    from {{ ref('fct_slow_alerts') }} as own
    left join {{ ref('fct_slow_alerts') }} as shared on own.part_of = shared.alert_id
    where own.subject_type = 'drive'
        and (own.cleared_at is null or (shared.alert_id is not null and shared.cleared_at is null))
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
    select
        *,
        row_number() over (partition by drive_id order by decision_seq desc) as decision_place
    from {{ ref('fct_drive_decisions') }}
    where state in ('pending', 'standing')
),

first_slow as (
    select intervals.drive_id, min(intervals.started_at) as slow_since_utc
    from {{ ref('fct_slowdown_intervals') }} as intervals
    inner join {{ ref('publication') }} as publication on intervals.ended_at > publication.last_hour_utc - interval 28 day
    where intervals.degree = 'slow'
    group by intervals.drive_id
),

listed as (
    select drive_id from candidates where verdict <> 'leave'
    union
    select subject_id as drive_id from alerts
    union
    select drive_id from costs where cost_rank <= {{ var('action_costliest_drives') }} and tail_hours > 0
    union
    select drive_id from decisions where state = 'pending'
),

joined as (
    select
        listed.drive_id,
        drives.kind,
        coalesce(candidates.raid_group_id, drives.current_raid_group_id) as raid_group_id,
        drives.host,
        drives.enclosure,
        drives.slot,
        drives.device,
        drives.model,
        drives.capacity_bytes,
        first_slow.slow_since_utc,
        candidates.candidate_rank,
        candidates.boundary_utc,
        candidates.verdict,
        candidates.verdict_reason,
        candidates.own_tail_hours_28d,
        candidates.tail_hours_caused_28d,
        candidates.slow_hours_28d,
        candidates.cost_tail_hours,
        alerts.alert_id,
        alerts.reason as alert_reason,
        alerts.first_slow_hour_utc as alert_since_utc,
        alerts.raised_at,
        alerts.slow_hours as alert_slow_hours,
        alerts.imbalanced_hours,
        alerts.max_slowdown,
        alerts.shared_type,
        alerts.shared_id,
        alerts.shared_drive_count,
        past_alerts.last_cleared_at,
        last_week.week_utc,
        costs.cost_rank,
        coalesce(costs.tail_hours, 0) as week_tail_hours,
        coalesce(costs.tail_hours > 0 and costs.cost_rank <= {{ var('action_costliest_drives') }}, false) as is_costliest,
        decisions.verdict as decision,
        decisions.decided_by,
        decisions.decided_at,
        decisions.note,
        decisions.ticket,
        decisions.until_utc,
        coalesce(decisions.is_past_until, false) as is_overdue,
        floors.held_back_by,
        floors.max_latency_us,
        floors.floor_us,
        replaced.replaced_at
    from listed
    cross join last_week
    left join candidates on listed.drive_id = candidates.drive_id
    left join alerts on listed.drive_id = alerts.subject_id and alerts.alert_place = 1
    left join past_alerts on listed.drive_id = past_alerts.drive_id
    left join costs on listed.drive_id = costs.drive_id
    left join decisions on listed.drive_id = decisions.drive_id and decisions.decision_place = 1
    left join {{ ref('int_drives__below_floor') }} as floors on listed.drive_id = floors.drive_id
    left join first_slow on listed.drive_id = first_slow.drive_id
    left join {{ ref('int_drives__replaced') }} as replaced on listed.drive_id = replaced.drive_id
    left join {{ ref('dim_drives') }} as drives on listed.drive_id = drives.drive_id
),

judged as (
    select
        *,
        case
            when replaced_at is not null or held_back_by is not null then 'none'
            when verdict in ('replace', 'check path') then verdict
            when shared_id is not null then 'check path'
            when alert_id is not null then 'inspect'
            when verdict = 'watch' then 'watch'
            else 'none'
        end as action_undecided,
        -- what is found after the next Monday is news to the person who decided to watch
        replaced_at is null and coalesce(
            decision in ('replace', 'dismiss') or decided_at >= coalesce(cast(date_trunc('week', boundary_utc) as timestamp), decided_at), false
        ) as is_decided
    from joined
),

worded as (
    select
        *,
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
            when held_back_by is not null
                then 'None of its slow hours reached ' || cast(cast(floor_us as bigint) as string) || ' us, the floor of concern of its kind.'
            when action_undecided = verdict then verdict_reason
            when action_undecided = 'check path'
                then 'It became slow within a day of ' || {{ counted_noun('shared_drive_count - 1', 'other drive') }} || ' of ' || shared_type || ' ' || shared_id
                    || ', so look at what they share.'
            when alert_reason = 'chronic'
                then 'It was a little slow in ' || {{ counted_noun('alert_slow_hours', 'hour') }} || ' of four weeks, most of those it reported. '
                    || 'Compare its firmware, model and workload with those of its peers.'
            when alert_id is not null and 2 * imbalanced_hours >= alert_slow_hours
                then 'In ' || cast(imbalanced_hours as string) || ' of ' || {{ counted_noun('alert_slow_hours', 'slow hour') }}
                    || ' it did far more I/O, or far larger, than its peers: look at its workload first.'
            when alert_id is not null
                then 'It was slow in ' || {{ counted_noun('alert_slow_hours', 'hour') }} || ', up to ' || {{ rounded_text('max_slowdown', 1) }}
                    || ' times as slow as its peers at the same load: check cabling and reseat it.'
            when verdict is not null then verdict_reason
            else 'It is no data drive of its RAID group any more.'
        end as why_undecided,
        -- why it is on one list and not on another
        case
            when alert_id is not null then ''
            when last_cleared_at is not null then 'No open alert: the last one ended on ' || cast(cast(last_cleared_at as date) as string) || '. '
            else 'No open alert: it was never slow in {{ var("alert_slow_hours") }} hours of {{ var("alert_window_hours") }}. '
        end
        || case
            when verdict <> 'leave' then ''
            when verdict = 'leave' and (action_undecided <> 'none' or is_decided) then 'No candidate: ' || verdict_reason || ' '
            when verdict = 'leave' then 'No candidate. '
            when replaced_at is not null then 'No candidate: it has gone. '
            else 'No candidate: it was not slow in the 28 days before the last midnight. '
        end
        || case
            when is_costliest then ''
            when week_tail_hours = 0 then 'Not among the costliest of the last whole week: no tail hour.'
            else 'Not among the costliest of the last whole week: ' || {{ counted_noun('week_tail_hours', 'tail hour') }} || ', place '
                || cast(cost_rank as string) || '.'
        end as lists_reason
    from judged
)

select
    drive_id,
    cast(row_number() over (
        order by
            case action when 'replace' then 1 when 'check path' then 2 when 'inspect' then 3 when 'watch' then 4 else 5 end asc,
            candidate_rank asc nulls last,
            raised_at desc nulls last,
            cost_rank asc nulls last,
            drive_id asc
    ) as bigint) as action_rank,
    action,
    action in ('replace', 'check path', 'inspect') as needs_person,
    case when is_decided then why_decided else why_undecided end as why,
    action_undecided,
    why_undecided,
    kind,
    raid_group_id,
    host,
    enclosure,
    slot,
    device,
    model,
    capacity_bytes,
    case when action = 'inspect' then alert_since_utc else coalesce(slow_since_utc, alert_since_utc) end as since_utc,
    own_tail_hours_28d,
    tail_hours_caused_28d,
    slow_hours_28d,
    cost_tail_hours,
    verdict,
    alert_id is not null as has_open_alert,
    alert_reason,
    is_costliest,
    week_utc,
    cast(week_tail_hours as bigint) as week_tail_hours,
    cost_rank,
    decision,
    decided_by,
    decided_at,
    ticket,
    nullif(trim(lists_reason), '') as lists_reason,
    held_back_by
from worded
