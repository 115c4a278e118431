-- What drives caused in the 28 days after each verdict, against what replacing them would have cost: whether a verdict can be signed. Over all
-- week boundaries whose outcome is known. Grain: kind, verdict, replace_rule.
select
    kind,
    verdict,
    replace_rule,
    count(distinct boundary_utc) as boundary_count,
    count(distinct drive_id) as drive_count,
    count(*) as verdict_count,
    cast(sum(tail_hours_caused_28d) as bigint) as tail_hours_before,
    cast(sum(tail_hours_caused_after) as bigint) as tail_hours_after,
    cast(sum(cast(round(1000000 * cost_tail_hours) as bigint)) as double) / 1000000.0 as cost_tail_hours,
    {{ counted('tail_hours_caused_after > cost_tail_hours') }} as paid_count,
    {{ counted('tail_hours_caused_after > cost_tail_hours') }} / cast(count(*) as double) as paid_ratio
from {{ ref('int_drive_weeks__judged') }}
where tail_hours_caused_after is not null
group by kind, verdict, replace_rule
