{{ config(materialized='view') }}
-- Latency against throughput within the hours of a RAID group's day, as Perseus looks at them. Grain: drive_id, from_utc.
with drive_hours as (
    select drive_id, hour_utc, raid_group_id, day_utc from {{ ref('int_drive_hours') }} where is_in_population
),

samples as (
    select
        samples.*,
        drive_hours.raid_group_id, drive_hours.day_utc,
        -- minutes that were observed
        {{ hours_between('samples.from_utc', 'samples.to_utc') }} * 60 as sample_minutes,
        {{ given_directions('samples') }}
    from drive_hours
    inner join {{ ref('int_drive_samples__identified') }} as samples
        on drive_hours.drive_id = samples.drive_id and drive_hours.hour_utc = cast(date_trunc('hour', samples.from_utc) as timestamp)
    where coalesce(samples.coverage, 1.0) >= samples.min_coverage
),

measured_samples as (
    select
        drive_id, from_utc, raid_group_id, day_utc, sample_minutes,
        60 * sample_minutes * coalesce(coverage, 1.0) as observed_seconds,
        {{ merged_latency() }} as latency_us,
        {{ merged_bytes() }} as moved_bytes,
        cast({{ merged_io_count() }} as double) as io_count
    from samples
    where sample_minutes <= {{ var('perseus_window_minutes') }}
),

shortest as (
    select raid_group_id, day_utc, min(sample_minutes) as sample_minutes
    from measured_samples
    group by raid_group_id, day_utc
),

compared_samples as (
    select
        measured_samples.*,
        -- one measure of throughput for all
        count(measured_samples.moved_bytes) over (partition by measured_samples.raid_group_id, measured_samples.day_utc) > 0 as has_bytes
    from measured_samples
    inner join shortest
        on measured_samples.raid_group_id = shortest.raid_group_id
        and measured_samples.day_utc = shortest.day_utc
        and measured_samples.sample_minutes = shortest.sample_minutes
),

known_samples as (
    select
        *,
        case when has_bytes then moved_bytes else io_count end / nullif(observed_seconds, 0.0) as throughput_per_second
    from compared_samples
    where latency_us is not null
)

select
    drive_id, from_utc, raid_group_id, day_utc,
    -- no drive takes a thousand seconds or moves that much: squares stay finite
    least(latency_us, 1e9) as latency_us,
    least(throughput_per_second, 1e15) as throughput_per_second
from known_samples
where throughput_per_second is not null
