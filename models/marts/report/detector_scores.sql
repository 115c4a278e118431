-- How well each detector separates the drives labelled slow from those labelled healthy. Grain: detector.
with counts as (
    select
        detector,
        count(drive_id) as labelled_count,
        count(case when not is_seen then drive_id end) as unseen_count,
        count(case when is_seen and is_slow and is_flagged then 1 end) as true_positive_count,
        count(case when is_seen and not is_slow and is_flagged then 1 end) as false_positive_count,
        count(case when is_seen and is_slow and not is_flagged then 1 end) as false_negative_count,
        count(case when is_seen and not is_slow and not is_flagged then 1 end) as true_negative_count
    from {{ ref('int_detectors__labelled') }}
    group by detector
)

select
    detector,
    labelled_count,
    unseen_count,
    true_positive_count,
    false_positive_count,
    false_negative_count,
    true_negative_count,
    cast(true_positive_count as double) / nullif(true_positive_count + false_positive_count, 0) as precision_ratio,
    cast(true_positive_count as double) / nullif(true_positive_count + false_negative_count, 0) as recall_ratio,
    cast(2 * true_positive_count as double)
    / nullif(2 * true_positive_count + false_positive_count + false_negative_count, 0) as f1,
    case when detector = 'perseus' then {{ why_no_python() }} end as not_run_because
from counts
