{{ config(meta={'made': 'each_build'}) }}
-- Runs of consecutive slow hours of one drive in one RAID group, and of mildly slow ones. Grain: drive_id, threshold, started_at.
select * from {{ ref('int_slowdown_intervals') }}
