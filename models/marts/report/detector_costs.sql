-- What each detector's mistakes cost a labelled drive, by what a slow drive that stays costs over a needless replacement.
-- Grain: detector, miss_cost_ratio.
with ratios as (
{%- for ratio in var('miss_cost_ratios') %}
    select cast({{ ratio }} as double) as miss_cost_ratio{{ "\n    union all" if not loop.last }}
{%- endfor %}
)

select
    scores.detector,
    ratios.miss_cost_ratio,
    scores.false_negative_count as missed_count,
    scores.false_positive_count as needless_count,
    scores.labelled_count - scores.unseen_count as judged_count,
    (ratios.miss_cost_ratio * scores.false_negative_count + scores.false_positive_count)
    / nullif(scores.labelled_count - scores.unseen_count, 0) as expected_cost
from {{ ref('detector_scores') }} as scores
cross join ratios
