-- Verdict of each detector on a drive and day; where it has nothing against the drive there is no row. Grain: drive_id, detector, day_utc.
select * from {{ ref('int_detector_verdicts') }}
