{{ config(materialized='view') }}
-- Slowdown within hours, of what was ingested with `--resolution`: each drive against its RAID group in the same minutes. Data drives in a RAID group
-- wide enough to have peers. Grain: drive_id, from_utc, to_utc.
with samples as (
    select
        samples.*,
        -- a drive stands where its hour stands
        drive_hours.raid_group_id, drive_hours.is_in_population,
        coalesce(samples.coverage, 1.0) >= samples.min_coverage as is_covered,
        {{ given_directions('samples') }}
    from {{ ref('int_drive_samples__identified') }} as samples
    inner join {{ ref('int_drive_hours') }} as drive_hours
        on samples.drive_id = drive_hours.drive_id
        and cast(date_trunc('hour', samples.from_utc) as timestamp) = drive_hours.hour_utc
    where drive_hours.is_data_drive
),

measured_samples as (
    select
        drive_id, from_utc, to_utc, raid_group_id, is_in_population, is_covered, coverage, source,
        {{ merged_latency() }} as latency_us,
        {{ merged_io_count() }} as io_count,
        {{ merged_io_size() }} as io_size_bytes
    from samples
),

medians as (
    select
        raid_group_id, from_utc, to_utc,
        count(latency_us) as latency_count,
        {{ median_of_group('latency_us') }} as median_latency_us
    from measured_samples
    where is_covered
    group by raid_group_id, from_utc, to_utc
),

compared_samples as (
    select
        measured_samples.*,
        drives.kind,
        raid_hours.slow_at,
        medians.latency_count,
        case
            when medians.latency_count >= {{ var('min_reporting_drives') }} and medians.median_latency_us > 0 then medians.median_latency_us
        end as median_latency_us
    from measured_samples
    left join medians
        on measured_samples.raid_group_id = medians.raid_group_id
        and measured_samples.from_utc = medians.from_utc
        and measured_samples.to_utc = medians.to_utc
    inner join {{ ref('dim_drives') }} as drives on measured_samples.drive_id = drives.drive_id
    inner join {{ ref('int_raid_hours') }} as raid_hours
        on measured_samples.raid_group_id = raid_hours.raid_group_id
        and cast(date_trunc('hour', measured_samples.from_utc) as timestamp) = raid_hours.hour_utc
    where measured_samples.is_in_population
),

slowdowns as (
    select *, case when is_covered then latency_us / median_latency_us end as slowdown
    from compared_samples
)

select
    drive_id, from_utc, to_utc, raid_group_id, kind, latency_us, median_latency_us, slowdown,
    {{ exclusion_reason() }} as exclusion_reason,
    coalesce(slowdown >= slow_at, false) as is_slow,
    coverage, io_count, io_size_bytes, source
from slowdowns
