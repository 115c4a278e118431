{{ config(materialized="by_day") }}
-- Fine counts of slowdowns, tails and RIO degradations by day and kind, of slowdowns also by class of drives: what percentiles and curves
-- are read from without going through the hours again. From `mild_threshold` on a drive-hour's own value is kept besides
-- (int_drive_hours__slow). Grain: day_utc, kind, drive_class, measure, edge_per_mille, is_on_edge.
with drive_hours as (
    select
        drive_hours.day_utc,
        drives.kind,
        drives.drive_class,
        {{ age_year('drives.deployed_on', 'drive_hours.hour_utc') }} as age_year,
        drive_hours.slowdown,
        drive_hours.rate_imbalance,
        drive_hours.size_imbalance
    from {{ ref('int_drive_hours') }} as drive_hours
    inner join {{ ref('int_drives') }} as drives on drive_hours.drive_id = drives.drive_id
    where drive_hours.is_in_population and drive_hours.slowdown is not null
),

raid_hours as (
    select raid_hours.*, coalesce(kinds.kind, 'unknown') as kind
    from {{ ref('int_raid_hours') }} as raid_hours
    left join {{ ref('int_raid_groups__kinds') }} as kinds on raid_hours.raid_group_id = kinds.raid_group_id
    where raid_hours.is_valid
),

observed as (
    select day_utc, kind, drive_class, 'slowdown' as measure, slowdown as value from drive_hours
    union all
    select day_utc, kind, 'all' as drive_class, 'slowdown_rate_imbalanced' as measure, slowdown as value
    from drive_hours
    where rate_imbalance >= {{ var('imbalanced') }}
    union all
    select day_utc, kind, 'all' as drive_class, 'slowdown_size_imbalanced' as measure, slowdown as value
    from drive_hours
    where size_imbalance >= {{ var('imbalanced') }}
    union all
    select day_utc, kind, 'all' as drive_class, 'slowdown_year_' || cast(age_year as varchar) as measure, slowdown as value
    from drive_hours
    where age_year is not null
{%- for rank in (1, 2, 3) %}
    union all
    select day_utc, kind, 'all' as drive_class, 'tail_{{ rank }}' as measure, tail_{{ rank }} as value from raid_hours
{%- endfor %}
    union all
    select day_utc, kind, 'all' as drive_class, 'rio_' || transition as measure, rio_degradation as value
    from raid_hours
    where transition is not null and rio_degradation is not null
),

binned as (
    select day_utc, kind, drive_class, measure, value, {{ bin_edge('value') }} as edge_per_mille from observed
)

select
    day_utc,
    kind,
    drive_class,
    measure,
    edge_per_mille,
    value = cast(edge_per_mille as double) / 1000 as is_on_edge,
    count(*) as hour_count
from binned
group by day_utc, kind, drive_class, measure, edge_per_mille, value = cast(edge_per_mille as double) / 1000
