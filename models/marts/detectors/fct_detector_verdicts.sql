-- What each detector says of a drive on a day; where it has nothing against the drive there is no row. Grain: drive_id, detector, day_utc.
select * from {{ ref('int_detector_verdicts') }}
