{{ config(schema='marts') }}
-- The study's figures of this fleet: at every x the share of the population up to it, and below it. Grain: figure, curve, x.
with cumulated_counts as (
    select
        figure, curve, kind, x, equal_count,
        sum(value_count) over (partition by figure, curve) as population,
        sum(value_count) over (partition by figure, curve order by x nulls last rows between unbounded preceding and current row)
        - value_count as below_count
    from {{ ref('int_study__curve_counts') }}
),

points as (
    select
        figure, curve, kind, x,
        cast(below_count + equal_count as double) / cast(population as double) as y,
        cast(below_count as double) / cast(population as double) as y_left,
        cast(population as bigint) as population,
        -- the shares that the study takes of the same values; a RAID group has one width and one duration
        case
            when figure like '2%' then 'width'
            when figure like '4%' and curve <> 'Si' then 'tail_' || substring(curve, 2)
            when figure like '4%' or figure like '8%' or figure = '9' then 'slowdown'
            when figure like '10%' then 'rio'
            when figure in ('11a', '11b') then 'wait_hours'
            when figure in ('11c', '11d') then 'recur_hours'
{%- for figure, measure in (
    ('5a', 'interval_hours'), ('5b', 'gap_hours'), ('6a', 'max_slowdown'), ('6b', 'slow_hours'), ('7a', 'slow_rate_imbalance'),
    ('7b', 'rate_imbalanced_slowdown'), ('7c', 'slow_size_imbalance'), ('7d', 'size_imbalanced_slowdown')
) %}
            when figure = '{{ figure }}' then '{{ measure }}'
{%- endfor %}
        end as measure,
        case
            when figure like '8%' then 'year ' || curve
            when figure like '10%' then replace(curve, '-', '_')
            when figure like '11%' or figure = '9' then curve
            else 'all'
        end as class
    from cumulated_counts
    -- Figure 9 starts where its cells are counted; drives that were never slow have no place on Figure 6a's axis
    where x is not null
        and equal_count is not null
        and exists (
            select 1
            from {{ ref('paper_curves') }} as plotted
            where plotted.figure = cumulated_counts.figure and plotted.curve = cumulated_counts.curve
        )
        and (figure <> '6a' or x > 0)
),

-- how much the hours of a RAID group depend on each other, from each x at which the study counts to the next; below the first as there
effects as (
    select
        measure, class, kind, cluster_count,
        effective_count / denominator as independence,
        case when row_number() over (partition by measure, class, kind order by x) > 1 then x + x_shift end as from_x,
        lead(x) over (partition by measure, class, kind order by x) + x_shift as until_x
    from (select *, case when measure = 'interval_hours' then 1 else 0 end as x_shift from {{ ref('int_study__shares') }} where x is not null) as shares
),

spreads as (
    select
        points.*,
        effects.cluster_count,
        case when effects.cluster_count >= {{ least_groups() }} then greatest(points.population * effects.independence, 1.0) end as effective_count
    from points
    left join effects
        on points.measure = effects.measure
        and points.class = effects.class
        and points.kind = effects.kind
        and points.x >= coalesce(effects.from_x, points.x)
        and (points.x < effects.until_x or effects.until_x is null)
)

select
    figure, curve, kind, x, y, y_left, population,
    case when effective_count is not null then case when y = 0 then 0.0 else {{ wilson_low('y', 'effective_count') }} end end as y_low,
    case when effective_count is not null then case when y = 1 then 1.0 else {{ wilson_high('y', 'effective_count') }} end end as y_high,
    cast(cluster_count as bigint) as raid_group_count
from spreads
