{%- set dependence_edges = [1.2, 1.5, 2.0, 4.0] %}{#- where hours of a RAID group are asked how much they depend on each other -#}
-- How much the hours of a RAID group depend on each other, for the intervals of percentiles. Grain: measure, class, x, kind.
with clusters as (
{%- for subject in ('drive_hour', 'raid_hour') %}
    select measure, class, x, kind, cluster_id, hits, total
    from {{ ref('int_study__' ~ subject ~ '_counts') }}
    where total > 0 and x in ({{ dependence_edges | join(', ') }})
    {%- if not loop.last %}
    union all
    {%- endif %}
{%- endfor %}
),

{{ share_estimates('clusters') }}
