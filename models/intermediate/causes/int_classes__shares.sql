-- Share of drive-hours that were slow, by model and by year of age. Grain: measure, class, x, kind.
with group_weeks as (
{{- class_periods('raid_group_id') -}}
),

group_months as (
{{- class_periods('raid_group_id', 'month') -}}
),

clusters as (
{%- for measure, class, periods, x in (
    ('model', 'model', 'group_weeks', 'cast(null as double)'),
    ('model', 'model', 'group_weeks', 'cast(' ~ hour_index('week_utc') ~ ' as double)'),
    ('age_year', 'age_year', 'group_weeks', 'cast(null as double)'),
    ('age_year', 'age_year', 'group_weeks', 'cast(' ~ hour_index('week_utc') ~ ' as double)'),
    ('model_month', 'model', 'group_months', 'cast(' ~ hour_index('month_utc') ~ ' as double)')
) %}
    select
        '{{ measure }}' as measure,
        {{ class }} as class,
        {{ x }} as x,
        kind,
        raid_group_id as cluster_id,
        cast(sum(slow_hours) as bigint) as hits,
        cast(sum(drive_hours) as bigint) as total
    from {{ periods }}
    group by {{ class }}, {{ x }}, kind, raid_group_id{{ "\n    union all" if not loop.last }}
{%- endfor %}
),

{{ share_estimates('clusters', is_pooled=true) }}
