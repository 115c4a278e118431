-- Every share the study looks at, with its interval. Grain: measure, class, x, kind.
with clusters as (
{%- for subject in ('drive_hour', 'imbalanced_hour', 'raid_hour', 'slow_hour', 'interval', 'event', 'fleet') %}
    select measure, class, x, kind, cluster_id, hits, total from {{ ref('int_study__' ~ subject ~ '_counts') }} where total > 0
    union all
{%- endfor %}
{%- for subject in ('variant', 'event_variant') %}
    select 'variant: ' || variant as measure, id as class, cast(null as double) as x, kind, cluster_id, hits, total
    from {{ ref('int_study__' ~ subject ~ '_counts') }}
    where total > 0
    {%- if not loop.last %}
    union all
    {%- endif %}
{%- endfor %}
),

{{ share_estimates('clusters') }}
