-- Whether each detector ever flagged each labelled drive that it could see. Grain: detector, drive_id.
with detectors as (
    {{ detectors() }}
),

seen as (
    select distinct drive_id, false as is_of_samples
    from {{ ref('int_drive_days') }}
    where slowdown_hours > 0
    union all
    select distinct drive_id, true as is_of_samples
    from {{ ref('int_sampled_days') }}
),

flagged as (
    select distinct detector, drive_id
    from {{ ref('int_detector_verdicts') }}
    where is_flagged
)

-- a detector without a labelled drive still has a row, for its counts of 0
select
    detectors.detector,
    labels.drive_id,
    labels.verdict = 'slow' as is_slow,
    seen.drive_id is not null as is_seen,
    flagged.drive_id is not null as is_flagged
from detectors
left join {{ ref('stg_raw__labels') }} as labels on true
left join seen on labels.drive_id = seen.drive_id and detectors.is_of_samples = seen.is_of_samples
left join flagged on detectors.detector = flagged.detector and labels.drive_id = flagged.drive_id
