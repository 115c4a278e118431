{{ config(materialized='view') }}
-- Slowdown and imbalance of each drive-hour of a data drive in a RAID group wide enough to have peers. Grain: drive_id, hour_utc.
-- a left join of one row a drive: DuckDB then leaves it out of counts that do not ask for kind or age
with drives as (
    select drive_id, max(kind) as kind, max(deployed_on) as deployed_on
    from {{ ref('dim_drives') }}
    group by drive_id
),

drive_hours as (
    select drive_hours.*, drives.kind as drive_kind, drives.deployed_on
    from {{ ref('int_drive_hours') }} as drive_hours
    left join drives on drive_hours.drive_id = drives.drive_id
    where drive_hours.is_in_population
)

select
    drive_id, hour_utc, raid_group_id,
    drive_kind as kind,
    latency_us, median_latency_us, slowdown, exclusion_reason, is_slow,
    is_mild as is_slow_15,
    coverage, io_count, rate_imbalance, io_size_bytes, size_imbalance, read_slowdown, write_slowdown,
    {{ age_year('deployed_on', 'hour_utc') }} as age_year
from drive_hours
