{{ config(meta={'made': 'each_build'}) }}
-- Gaps between consecutive slow drive-hours of one drive, in whatever RAID group it was. Grain: drive_id, hour_utc.
select * from {{ ref('int_slowdown_arrivals') }}
