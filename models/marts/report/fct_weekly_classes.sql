{%- set class_drives = 10 %}{#- a model or year of age of fewer drives is shown, not compared -#}
{%- set class_raid_groups = 3 %}{#- or in fewer RAID groups -#}
-- How slow the drives of each model and of each year of age were in an ISO week (UTC), beside all weeks. Grain: week_utc, dimension, class, kind.
with drive_weeks as (
{{- class_periods('drive_id') -}}
),

drive_counts as (
{%- for dimension in ('model', 'age_year') %}
    select
        week_utc,
        '{{ dimension }}' as dimension,
        {{ dimension }} as class,
        kind,
        count(distinct drive_id) as drive_count,
        count(distinct case when slow_hours > 0 then drive_id end) as slow_drive_count
    from drive_weeks
    group by week_utc, {{ dimension }}, kind{{ "\n    union all" if not loop.last }}
{%- endfor %}
)

select
    {{ hour_at('shares.x') }} as week_utc,
    shares.measure as dimension,
    shares.class, shares.kind,
    drive_counts.drive_count, drive_counts.slow_drive_count,
    shares.cluster_count as raid_group_count,
    shares.denominator as drive_hours,
    shares.numerator as slow_drive_hours,
    shares.share as slow_ratio,
    shares.share_low as slow_ratio_low,
    shares.share_high as slow_ratio_high,
    over_all.share as all_weeks_slow_ratio,
    -- a model of a few drives, or in one RAID group, says more of that group than of the model
    drive_counts.drive_count >= {{ class_drives }} and shares.cluster_count >= {{ class_raid_groups }} as is_comparable
from {{ ref('int_classes__shares') }} as shares
inner join {{ ref('int_classes__shares') }} as over_all
    on shares.measure = over_all.measure and shares.class = over_all.class and shares.kind = over_all.kind and over_all.x is null
left join drive_counts
    on {{ hour_at('shares.x') }} = drive_counts.week_utc
    and shares.measure = drive_counts.dimension
    and shares.class = drive_counts.class
    and shares.kind = drive_counts.kind
where shares.x is not null
