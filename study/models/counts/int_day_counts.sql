{{ config(meta={'made': 'by_day_when_asked'}) }}
-- Fine counts of slowdowns, tails and RIO degradations by day and kind, of slowdowns also by class of drives: what percentiles and curves
-- are read from without going through the hours again. From the first of `study_edges` on a drive-hour's own value is kept besides
-- (int_drive_hours__slow). Grain: day_utc, kind, drive_class, measure, edge_per_mille, is_on_edge.
with drive_hours as (
    select
        drive_hours.day_utc,
        drives.kind, drives.drive_class,
        {{ age_year('drives.deployed_on', 'drive_hours.hour_utc') }} as age_year,
        drive_hours.rate_imbalance >= {{ var('imbalanced') }} as is_rate_imbalanced,
        drive_hours.size_imbalance >= {{ var('imbalanced') }} as is_size_imbalanced,
        drive_hours.slowdown as value,
        {{ bin_edge('drive_hours.slowdown') }} as edge_per_mille
    from {{ source('intermediate', 'int_drive_hours') }} as drive_hours
    inner join {{ source('intermediate', 'int_drives') }} as drives on drive_hours.drive_id = drives.drive_id
    where drive_hours.is_in_population and drive_hours.slowdown is not null
),

-- once through the hours: what follows goes through the bins
drive_hour_bins as (
    select
        day_utc, kind, drive_class, age_year, is_rate_imbalanced, is_size_imbalanced, edge_per_mille,
        {{ is_on_edge() }} as is_on_edge,
        count(*) as hour_count
    from drive_hours
    group by day_utc, kind, drive_class, age_year, is_rate_imbalanced, is_size_imbalanced, edge_per_mille, {{ is_on_edge() }}
),

raid_hours as (
    select raid_hours.*, coalesce(kinds.kind, 'unknown') as kind
    from {{ source('intermediate', 'int_raid_hours') }} as raid_hours
    left join {{ source('intermediate', 'int_raid_groups__kinds') }} as kinds on raid_hours.raid_group_id = kinds.raid_group_id
    where raid_hours.is_valid
),

raid_hour_values as (
{%- for rank in (1, 2, 3) %}
    select day_utc, kind, 'tail_{{ rank }}' as measure, tail_{{ rank }} as value from raid_hours
    union all
{%- endfor %}
    select day_utc, kind, 'rio_' || transition as measure, rio_degradation as value from raid_hours where rio_degradation is not null
),

raid_hour_edges as (
    select day_utc, kind, measure, value, {{ bin_edge('value') }} as edge_per_mille from raid_hour_values
),

bins as (
    select day_utc, kind, drive_class, 'slowdown' as measure, edge_per_mille, is_on_edge, hour_count from drive_hour_bins
{%- for imbalance in ('rate', 'size') %}
    union all
    select day_utc, kind, 'all' as drive_class, 'slowdown_{{ imbalance }}_imbalanced' as measure, edge_per_mille, is_on_edge, hour_count
    from drive_hour_bins
    where is_{{ imbalance }}_imbalanced
{%- endfor %}
    union all
    select day_utc, kind, 'all' as drive_class, 'slowdown_year_' || cast(age_year as string) as measure, edge_per_mille, is_on_edge, hour_count
    from drive_hour_bins
    where age_year is not null
    union all
    select day_utc, kind, 'all' as drive_class, measure, edge_per_mille, {{ is_on_edge() }} as is_on_edge, count(*) as hour_count
    from raid_hour_edges
    group by day_utc, kind, measure, edge_per_mille, {{ is_on_edge() }}
)

select
    day_utc, kind, drive_class, measure, edge_per_mille, is_on_edge,
    cast(sum(hour_count) as bigint) as hour_count
from bins
group by day_utc, kind, drive_class, measure, edge_per_mille, is_on_edge
