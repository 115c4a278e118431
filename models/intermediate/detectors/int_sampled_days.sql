{{ config(meta={'made': 'by_day'}) }}
{%- set perseus_event_ratio = 1 %}{#- a window above is an event -#}
-- Windows and events of Perseus by drive and day. Grain: day_utc, drive_id, raid_group_id.
with placed_samples as (
    select
        samples.day_utc, samples.drive_id, samples.raid_group_id,
        {{ window_start('samples.from_utc', var('perseus_window_minutes')) }} as window_utc,
        samples.latency_us,
        fits.curve, fits.spread,
        (samples.throughput_per_second - fits.throughput_mean) / fits.throughput_deviation as u
    from {{ ref('int_drive_samples') }} as samples
    inner join {{ ref('int_raid_group_days__fitted') }} as fits
        on samples.raid_group_id = fits.raid_group_id and samples.day_utc = fits.day_utc
),

bounds as (
    select
        *,
        {{ polynomial('curve', var('perseus_degree'), 'u') }}
        + sqrt(greatest({{ polynomial('spread', 2 * var('perseus_degree'), 'u') }}, 0.0)) as bound_us
    from placed_samples
),

ratios as (
    select
        day_utc, drive_id, raid_group_id, window_utc,
        latency_us / bound_us as ratio,
        {{ median_of_group('latency_us / bound_us', 'partition by drive_id, raid_group_id, window_utc') }} as median_ratio
    from bounds
    -- far from what was fitted a polynomial may fall below 0: it says nothing there
    where bound_us > 0
),

-- the median of a window's upper half. Six decimals: sums are exact in any order, and a latency that is the bound to the last bit is not above it
windows as (
    select
        day_utc, drive_id, raid_group_id, window_utc,
        cast(least({{ median_of_group('ratio') }}, 1e9) as decimal(18, 6)) as upper_ratio
    from ratios
    where ratio >= median_ratio
    group by day_utc, drive_id, raid_group_id, window_utc
),

ranked_windows as (
    select
        *,
        upper_ratio > {{ perseus_event_ratio }} as is_event,
        row_number() over (partition by day_utc, drive_id, raid_group_id order by upper_ratio desc, window_utc asc) as worst_rank
    from windows
)

select
    day_utc, drive_id, raid_group_id,
    count(*) as window_count,
    count(case when is_event then 1 end) as event_count,
    cast(coalesce(sum(case when is_event then upper_ratio end), 0) as double) as event_ratio_sum,
    cast(max(upper_ratio) as double) as worst_ratio,
    max(case when worst_rank = 1 then window_utc end) as worst_window_utc
from ranked_windows
group by day_utc, drive_id, raid_group_id
