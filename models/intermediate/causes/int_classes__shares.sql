-- Share of drive-hours that were slow, by model and by year of age, week by week (x: hour index of the ISO week) and over all weeks (x null),
-- with an interval that knows that RAID groups are drawn, not hours. Grain: measure, class, x, kind.
with drive_weeks as (
    select
        coalesce(drives.kind, 'unknown') as kind,
        coalesce(drives.model, 'unknown') as model,
        coalesce(cast({{ age_year('drives.deployed_on', 'days.day_utc') }} as varchar), 'unknown') as age_year,
        days.raid_group_id as cluster_id,
        cast({{ hour_index("date_trunc('week', days.day_utc)") }} as double) as week_x,
        cast(sum(days.slowdown_hours_{{ edge_name(var('slow_threshold')) }}) as bigint) as hits,
        cast(sum(days.slowdown_hours) as bigint) as total
    from {{ ref('int_drive_days') }} as days
    left join {{ ref('dim_drives') }} as drives on days.drive_id = drives.drive_id
    where days.slowdown_hours > 0
    group by
        coalesce(drives.kind, 'unknown'),
        coalesce(drives.model, 'unknown'),
        coalesce(cast({{ age_year('drives.deployed_on', 'days.day_utc') }} as varchar), 'unknown'),
        days.raid_group_id,
        date_trunc('week', days.day_utc)
),

clusters as (
{%- for measure in ('model', 'age_year') %}
{%- for x in ('cast(null as double)', 'week_x') %}
    select
        '{{ measure }}' as measure,
        {{ measure }} as class,
        {{ x }} as x,
        kind,
        cluster_id,
        cast(sum(hits) as bigint) as hits,
        cast(sum(total) as bigint) as total
    from drive_weeks
    group by {{ measure }}, {{ x }}, kind, cluster_id{{ "\n    union all" if not loop.last }}
{%- endfor %}{{ "\n    union all" if not loop.last }}
{%- endfor %}
),

{{ share_estimates('clusters') }}
