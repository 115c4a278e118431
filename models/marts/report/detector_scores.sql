-- How well each detector separates the drives labelled slow from those labelled healthy. Grain: detector.
with detectors as (
    {{ detectors() }}
{%- for monitor in var('outlier_monitors') %}
    union all
    select '{{ monitor }}' as detector, false as is_of_samples
{%- endfor %}
),

seen_drives as (
    select distinct drive_id, false as is_of_samples
    from {{ ref('int_drive_days') }}
    where slowdown_hours > 0
    union all
    select distinct drive_id, true as is_of_samples
    from {{ ref('int_sampled_days') }}
),

flagged_drives as (
    select detector, drive_id from {{ ref('int_detector_verdicts') }} where is_flagged
    union
    select detector, drive_id from {{ ref('int_drive_days__monitored') }} where is_flagged
),

-- a detector without a labelled drive still has a row, for its counts of 0
labelled_detectors as (
    select
        detectors.detector,
        labels.drive_id,
        labels.verdict = 'slow' as is_slow,
        seen_drives.drive_id is not null as is_seen,
        flagged_drives.drive_id is not null as is_flagged
    from detectors
    left join {{ ref('stg_raw__labels') }} as labels on true
    left join seen_drives on labels.drive_id = seen_drives.drive_id and detectors.is_of_samples = seen_drives.is_of_samples
    left join flagged_drives on detectors.detector = flagged_drives.detector and labels.drive_id = flagged_drives.drive_id
),

counts as (
    select
        detector,
        count(drive_id) as labelled_count,
        count(case when not is_seen then drive_id end) as unseen_count,
        count(case when is_seen and is_slow and is_flagged then 1 end) as true_positive_count,
        count(case when is_seen and not is_slow and is_flagged then 1 end) as false_positive_count,
        count(case when is_seen and is_slow and not is_flagged then 1 end) as false_negative_count,
        count(case when is_seen and not is_slow and not is_flagged then 1 end) as true_negative_count
    from labelled_detectors
    group by detector
)

select
    detector, labelled_count, unseen_count, true_positive_count, false_positive_count, false_negative_count, true_negative_count,
    cast(true_positive_count as double) / nullif(true_positive_count + false_positive_count, 0) as precision_ratio,
    cast(true_positive_count as double) / nullif(true_positive_count + false_negative_count, 0) as recall_ratio,
    cast(2 * true_positive_count as double)
    / nullif(2 * true_positive_count + false_positive_count + false_negative_count, 0) as f1,
    case when detector = 'perseus' then {{ why_no_python() }} end as not_run_because
from counts
