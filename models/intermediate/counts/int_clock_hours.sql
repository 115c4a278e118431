{{ config(materialized="batch_file", stored_by="day") }}
-- Slow hours by the clock: hours with a slowdown and slow ones, by kind and the drives' time zone.
-- The batch's days as they are after it. Grain: day_utc, hour_utc, kind, timezone.
with drive_hours as (
    {{ signed_rows('drive_hours', 'is_in_population and slowdown is not null') }}
),

changed as (
    select
        cast(hour_utc as date) as day_utc,
        hour_utc,
        kind,
        timezone,
        cast(sum(sign) as bigint) as slowdown_hours,
        {{ counted('slowdown >= ' ~ var('slow_threshold')) }} as slow_hours
    from drive_hours
    group by cast(hour_utc as date), hour_utc, kind, timezone
)

{{ day_totals(['day_utc', 'hour_utc', 'kind', 'timezone'], [
    'slowdown_hours', 'slow_hours'
], source('plan', 'stored_clock_hours')) }}
