-- Share of drive-hours that were slow, by model and by year of age. Grain: measure, class, x, kind.
with group_weeks as (
{{- class_weeks('raid_group_id') -}}
),

clusters as (
{%- for measure in ('model', 'age_year') %}
{%- for x in ('cast(null as double)', 'cast(' ~ hour_index('week_utc') ~ ' as double)') %}
    select
        '{{ measure }}' as measure,
        {{ measure }} as class,
        {{ x }} as x,
        kind,
        raid_group_id as cluster_id,
        cast(sum(slow_hours) as bigint) as hits,
        cast(sum(drive_hours) as bigint) as total
    from group_weeks
    group by {{ measure }}, {{ x }}, kind, raid_group_id{{ "\n    union all" if not loop.last }}
{%- endfor %}{{ "\n    union all" if not loop.last }}
{%- endfor %}
),

{{ share_estimates('clusters', is_pooled=true) }}
