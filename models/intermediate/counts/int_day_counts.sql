{{ config(materialized="batch_file", stored_by="day") }}
-- Fine counts of slowdowns, tails and RIO degradations by day and kind, of slowdowns also by class of drives: what percentiles and curves
-- are read from without going through the hours again. From `mild_threshold` on a drive-hour's own value is kept besides
-- (int_drive_hours__slow). The batch's days as they are after it. Grain: day_utc, kind, drive_class, measure, edge_per_mille, is_on_edge.
with drive_hours as (
    {{ signed_rows('drive_hours', 'is_in_population and slowdown is not null') }}
),

raid_hours as (
    {{ signed_rows('raid_hours', 'is_valid') }}
),

observed as (
    select sign, kind, drive_class, hour_utc, 'slowdown' as measure, slowdown as value from drive_hours
    union all
    select sign, kind, 'all' as drive_class, hour_utc, 'slowdown_rate_imbalanced' as measure, slowdown as value
    from drive_hours
    where rate_imbalance >= {{ var('imbalanced') }}
    union all
    select sign, kind, 'all' as drive_class, hour_utc, 'slowdown_size_imbalanced' as measure, slowdown as value
    from drive_hours
    where size_imbalance >= {{ var('imbalanced') }}
    union all
    select sign, kind, 'all' as drive_class, hour_utc, 'slowdown_year_' || cast(age_year as varchar) as measure, slowdown as value
    from drive_hours
    where age_year is not null
{%- for rank in (1, 2, 3) %}
    union all
    select sign, kind, 'all' as drive_class, hour_utc, 'tail_{{ rank }}' as measure, tail_{{ rank }} as value from raid_hours
{%- endfor %}
    union all
    select sign, kind, 'all' as drive_class, hour_utc, 'rio_' || transition as measure, rio_degradation as value
    from raid_hours
    where transition is not null and rio_degradation is not null
),

binned as (
    select sign, kind, drive_class, hour_utc, measure, value, {{ bin_edge('value') }} as edge_per_mille from observed
),

changed as (
    select
        cast(hour_utc as date) as day_utc,
        kind,
        drive_class,
        measure,
        edge_per_mille,
        value = cast(edge_per_mille as double) / 1000 as is_on_edge,
        cast(sum(sign) as bigint) as hour_count
    from binned
    group by cast(hour_utc as date), kind, drive_class, measure, edge_per_mille, value = cast(edge_per_mille as double) / 1000
)

{{ day_totals(['day_utc', 'kind', 'drive_class', 'measure', 'edge_per_mille', 'is_on_edge'], [
    'hour_count'
], source('plan', 'stored_day_counts')) }}
