-- What the model's ranking saved beyond each other one over all week boundaries, with the 95% interval of a bootstrap over RAID groups.
-- Grain: kind, top_ratio, rule.
with group_rules as (
    select kind, top_ratio, rule, raid_group_id, sum(avoided_hundredths) as avoided_hundredths
    from {{ ref('int_raid_groups__backtest') }}
    group by kind, top_ratio, rule, raid_group_id
),

group_gains as (
    select
        other.kind,
        other.top_ratio,
        other.rule,
        other.raid_group_id,
        model.avoided_hundredths as model_hundredths,
        other.avoided_hundredths as rule_hundredths,
        model.avoided_hundredths - other.avoided_hundredths as gain_hundredths
    from group_rules as other
    inner join group_rules as model
        on other.kind = model.kind and other.top_ratio = model.top_ratio and other.raid_group_id = model.raid_group_id
    where other.rule <> 'model' and model.rule = 'model'
),

totals as (
    select
        group_gains.kind,
        group_gains.top_ratio,
        group_gains.rule,
        count(*) as raid_group_count,
        cast(sum(group_gains.model_hundredths) as double) / 100.0 as model_tail_hours_avoided,
        cast(sum(group_gains.rule_hundredths) as double) / 100.0 as tail_hours_avoided,
        cast(sum(group_gains.gain_hundredths) as double) / 100.0 as gain_tail_hours
    from group_gains
    group by group_gains.kind, group_gains.top_ratio, group_gains.rule
),

boundaries as (
    select
        kind,
        top_ratio,
        rule,
        count(*) as boundary_count,
        cast(sum(pick_count) as bigint) as pick_count,
        cast(sum(tail_hours_caused) as bigint) as tail_hours_caused
    from {{ ref('candidate_backtest') }}
    group by kind, top_ratio, rule
),

ends as (
    {{ bootstrap_gains('group_gains', ['kind', 'top_ratio', 'rule'], 'gain_hundredths', '100.0') }}
)

select
    totals.kind,
    totals.top_ratio,
    totals.rule,
    boundaries.boundary_count,
    boundaries.pick_count,
    totals.raid_group_count,
    boundaries.tail_hours_caused,
    totals.model_tail_hours_avoided,
    totals.tail_hours_avoided,
    totals.gain_tail_hours,
    coalesce(ends.gain_low, 0.0) as gain_low,
    coalesce(ends.gain_high, 0.0) as gain_high,
    case
        when ends.gain_low > 0 then 'gains'
        when ends.gain_high < 0 then 'loses'
        else 'open'
    end as verdict
from totals
inner join boundaries on totals.kind = boundaries.kind and totals.top_ratio = boundaries.top_ratio and totals.rule = boundaries.rule
left join ends on totals.kind = ends.kind and totals.top_ratio = ends.top_ratio and totals.rule = ends.rule
