-- How many values lie below the first of `study_edges`, in bins: what int_study__values leaves out. Grain: measure, class, kind, edge.
select
    case when measure like 'slowdown_year_%' then 'slowdown' else measure end as measure,
    case when measure like 'slowdown_year_%' then 'year ' || substring(measure, 15) else 'all' end as class,
    kind,
    cast(edge_per_mille as double) / 1000 as edge,
    cast(sum(hour_count) as bigint) as value_count
from {{ ref('int_day_counts') }}
where edge_per_mille < 1000 * {{ var('study_edges')[0] }} and (measure like 'slowdown_year_%' or measure in ('slowdown', 'tail_1', 'tail_2', 'tail_3'))
group by measure, kind, edge_per_mille
