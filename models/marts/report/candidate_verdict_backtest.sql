-- Cost of drives in the 28 days after each verdict, against the cost of replacing them: whether a verdict can be signed. Over all
-- Mondays whose outcome is known. Grain: kind, verdict, replace_rule.
select
    kind, verdict, replace_rule,
    count(distinct boundary_utc) as boundary_count,
    count(distinct drive_id) as drive_count,
    count(*) as verdict_count,
    cast(sum(cast(round(1000000 * own_tail_hours_28d) as bigint)) as double) / 1000000.0 as tail_hours_before,
    cast(sum(cast(round(1000000 * own_tail_hours_after) as bigint)) as double) / 1000000.0 as tail_hours_after,
    cast(sum(cast(round(1000000 * cost_tail_hours) as bigint)) as double) / 1000000.0 as cost_tail_hours,
    {{ counted('has_paid') }} as paid_count,
    {{ counted('has_paid') }} / cast(count(*) as double) as paid_ratio
from {{ ref('candidate_weeks') }}
where own_tail_hours_after is not null
group by kind, verdict, replace_rule
