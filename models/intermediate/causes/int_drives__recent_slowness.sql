-- Since when each drive is slow, and why most of its slow hours were, of the slow intervals that reach into the last 28 days. Grain: drive_id.
with recent_intervals as (
    select
        causes.drive_id, causes.started_at, causes.interval_hours, causes.cause, causes.evidence,
        row_number() over (partition by causes.drive_id, causes.cause order by causes.interval_hours desc, causes.started_at asc) as length_rank
    from {{ ref('int_interval_causes') }} as causes
    inner join {{ ref('stg_raw__publication') }} as publication
        on {{ hour_index('causes.started_at') }} + causes.interval_hours > {{ hour_index('publication.last_hour_utc') }} - 28 * 24
),

by_cause as (
    select
        recent_intervals.drive_id, recent_intervals.cause,
        min(recent_intervals.started_at) as started_at,
        sum(recent_intervals.interval_hours) as cause_hours,
        max(case when recent_intervals.length_rank = 1 then recent_intervals.evidence end) as evidence
    from recent_intervals
    group by recent_intervals.drive_id, recent_intervals.cause
),

ranked_causes as (
    select
        by_cause.*,
        min(by_cause.started_at) over (partition by by_cause.drive_id) as slow_since_utc,
        row_number() over (partition by by_cause.drive_id order by by_cause.cause_hours desc, rules.cause_rank asc) as cause_rank
    from by_cause
    left join {{ ref('cause_rules') }} as rules on by_cause.cause = rules.cause
)

select drive_id, slow_since_utc, cause, evidence
from ranked_causes
where cause_rank = 1
