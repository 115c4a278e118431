-- Why each slow interval was slow: the first rule of the seed cause_rules that holds, and what speaks for it. Grain: drive_id, started_at.
with ranked_causes as (
    select
        evidence.drive_id, evidence.started_at, evidence.cause, evidence.evidence,
        row_number() over (partition by evidence.drive_id, evidence.started_at order by rules.cause_rank) as cause_rank
    from {{ ref('int_intervals__evidence') }} as evidence
    inner join {{ ref('cause_rules') }} as rules on evidence.cause = rules.cause
)

select
    intervals.drive_id, intervals.started_at, intervals.raid_group_id, intervals.kind, intervals.interval_hours,
    ranked_causes.cause, ranked_causes.evidence
from {{ ref('int_slowdown_intervals') }} as intervals
left join ranked_causes on intervals.drive_id = ranked_causes.drive_id and intervals.started_at = ranked_causes.started_at and ranked_causes.cause_rank = 1
where intervals.degree = 'slow'
