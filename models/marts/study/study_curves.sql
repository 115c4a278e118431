{{ config(schema='marts') }}
-- The study's figures of this fleet: at every x the share of the population up to it, and below it. Grain: figure, curve, x.
with cumulated as (
    select
        figure, curve, kind, x, equal_count,
        sum(value_count) over (partition by figure, curve) as population,
        sum(value_count) over (partition by figure, curve order by x nulls last rows between unbounded preceding and current row)
        - value_count as below_count
    from {{ ref('int_study__curve_counts') }}
)

select
    figure, curve, kind, x,
    cast(below_count + equal_count as double) / cast(population as double) as y,
    cast(below_count as double) / cast(population as double) as y_left,
    cast(population as bigint) as population
from cumulated
-- Figure 9 starts where its cells are counted; drives that were never slow have no place on Figure 6a's axis
where x is not null
    and equal_count is not null
    and exists (
        select 1
        from {{ ref('paper_curves') }} as plotted
        where plotted.figure = cumulated.figure and plotted.curve = cumulated.curve
    )
    and (figure <> '6a' or x > 0)
