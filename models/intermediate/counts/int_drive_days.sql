{{ config(materialized="batch_file", stored_by="day") }}
-- What each drive showed in a day, in counts that add up: by drive because kind, age, model and cell type may be corrected later, and
-- because hours of one drive are not independent. The batch's days as they are after it. Grain: day_utc, drive_id, raid_group_id.
with drive_hours as (
    -- also those out of the population: events ask where they were. They have no slowdown of any sort and count nowhere else
    {{ signed_rows('drive_hours', 'true') }}
),

changed as (
    select
        cast(hour_utc as date) as day_utc,
        drive_id,
        raid_group_id,
        {{ counted_hours('true') }} as reported_in,
        {{ counted_hours('is_in_population') }} as in_population_in,
        {{ counted_hours('slowdown is not null') }} as slowdown_in,
        {{ counted('slowdown is not null') }} as slowdown_hours,
{%- for edge in var('slowdown_edges') %}
        {{ counted('slowdown >= ' ~ edge) }} as slowdown_hours_{{ edge_name(edge) }},
{%- endfor %}
        {{ counted('slowdown is not null and rate_imbalance is not null') }} as rate_hours,
        {{ counted('slowdown is not null and rate_imbalance >= ' ~ var('imbalanced')) }} as rate_imbalanced_hours,
        {{ counted('slowdown >= ' ~ var('slow_threshold') ~ ' and rate_imbalance >= ' ~ var('imbalanced')) }} as rate_imbalanced_slow_hours,
        {{ counted('slowdown is not null and size_imbalance is not null') }} as size_hours,
        {{ counted('slowdown is not null and size_imbalance >= ' ~ var('imbalanced')) }} as size_imbalanced_hours,
        {{ counted('slowdown >= ' ~ var('slow_threshold') ~ ' and size_imbalance >= ' ~ var('imbalanced')) }} as size_imbalanced_slow_hours,
        {{ counted('read_slowdown is not null') }} as read_hours,
        {{ counted('read_slowdown >= ' ~ var('slow_threshold')) }} as read_slow_hours,
        {{ counted('write_slowdown is not null') }} as write_hours,
        {{ counted('write_slowdown >= ' ~ var('slow_threshold')) }} as write_slow_hours,
{%- for side in ('read', 'write') %}
        {{ counted('is_' ~ side ~ '_multiple') }} as {{ side }}_multiple_hours,
        {{ counted('is_' ~ side ~ '_multiple_in_ticks') }} as {{ side }}_tick_hours,
{%- endfor %}
        {{ counted('is_slow_by_mean') }} as mean_slow_hours
{%- for floor in var('io_count_floors') %},
        {{ counted('is_slow_from_' ~ floor ~ '_ios is not null') }} as io_{{ floor }}_hours,
        {{ counted('is_slow_from_' ~ floor ~ '_ios') }} as io_{{ floor }}_slow_hours
{%- endfor %}
    from drive_hours
    group by cast(hour_utc as date), drive_id, raid_group_id
)

{{ day_totals(['day_utc', 'drive_id', 'raid_group_id'], [
    'reported_in', 'in_population_in', 'slowdown_in',
    'slowdown_hours', 'slowdown_hours_50', 'slowdown_hours_80', 'slowdown_hours_90', 'slowdown_hours_100', 'slowdown_hours_110',
    'slowdown_hours_120', 'slowdown_hours_130', 'slowdown_hours_150', 'slowdown_hours_200', 'slowdown_hours_300', 'slowdown_hours_400',
    'slowdown_hours_500', 'slowdown_hours_800', 'rate_hours', 'rate_imbalanced_hours', 'rate_imbalanced_slow_hours', 'size_hours',
    'size_imbalanced_hours', 'size_imbalanced_slow_hours', 'read_hours', 'read_slow_hours', 'write_hours', 'write_slow_hours',
    'read_multiple_hours', 'read_tick_hours', 'write_multiple_hours', 'write_tick_hours', 'mean_slow_hours', 'io_10_hours', 'io_10_slow_hours', 'io_100_hours', 'io_100_slow_hours'
], source('plan', 'stored_drive_days')) }}
