-- How many RAID-hours were free of tails in an ISO week (UTC), at both thresholds, against the budget of tail hours. Grain: week_utc, kind, threshold.
with shares as (
    select
        shares.*,
        case shares.class when 'mild' then thresholds.mild_at else thresholds.slow_at end as threshold,
        cast(case shares.class when 'mild' then {{ var('slo_mild_budget') }} else {{ var('slo_slow_budget') }} end as double) as budget_ratio
    from {{ ref('int_fleet__slo_shares') }} as shares
    inner join {{ ref('int_thresholds') }} as thresholds on shares.kind = thresholds.kind
)

select
    {{ hour_at('shares.x') }} as week_utc,
    shares.kind, shares.threshold,
    shares.denominator as raid_hours,
    shares.numerator as good_hours,
    shares.share as good_ratio,
    shares.share_low as good_ratio_low,
    shares.share_high as good_ratio_high,
    shares.budget_ratio,
    cast(shares.denominator - shares.numerator as double) / (shares.budget_ratio * shares.denominator) as budget_used,
    -- every RAID-hour was counted
    case when shares.denominator - shares.numerator > shares.budget_ratio * shares.denominator then 'missed' else 'kept' end as state,
    -- whether other RAID groups of such a fleet might have ended on the other side
    case
        when shares.share_low is null then 'few groups'
        when shares.share_low >= 1 - shares.budget_ratio or shares.share_high < 1 - shares.budget_ratio then 'excluded'
        else 'possible'
    end as chance
from shares
