{{ config(materialized="batch_file", stored_by="day") }}
-- Slowdown of the hours in which a drive got at least `imbalanced` times its share of the I/Os, or of their size, in counts that add up.
-- The batch's days as they are after it. Grain: day_utc, drive_id, raid_group_id, imbalance.
with drive_hours as (
    {{ signed_rows('drive_hours', 'is_in_population and slowdown is not null') }}
),

imbalanced as (
    select sign, drive_id, raid_group_id, hour_utc, slowdown, 'rate' as imbalance
    from drive_hours
    where rate_imbalance >= {{ var('imbalanced') }}
    union all
    select sign, drive_id, raid_group_id, hour_utc, slowdown, 'size' as imbalance
    from drive_hours
    where size_imbalance >= {{ var('imbalanced') }}
),

changed as (
    select
        cast(hour_utc as date) as day_utc,
        drive_id,
        raid_group_id,
        imbalance,
        cast(sum(sign) as bigint) as slowdown_hours
{%- for edge in var('imbalanced_edges') %},
        {{ counted('slowdown >= ' ~ edge) }} as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from imbalanced
    group by cast(hour_utc as date), drive_id, raid_group_id, imbalance
)

{{ day_totals(['day_utc', 'drive_id', 'raid_group_id', 'imbalance'], [
    'slowdown_hours', 'slowdown_hours_50', 'slowdown_hours_75', 'slowdown_hours_90', 'slowdown_hours_100', 'slowdown_hours_110',
    'slowdown_hours_125', 'slowdown_hours_150', 'slowdown_hours_200', 'slowdown_hours_300', 'slowdown_hours_400'
], source('plan', 'stored_imbalanced_days')) }}
