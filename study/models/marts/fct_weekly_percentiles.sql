{{ config(schema='report', meta={'by_week': {'column': 'week_utc'}}) }}
{#- in hundred-thousandths (99999 = 99.999%), denser towards the tail, which is the point -#}
{%- set ranks = var('percentile_ranks', [10, 100, 500] + range(1000, 90000, 1000) | list + range(90000, 99000, 250) | list
    + range(99000, 99900, 50) | list + range(99900, 99990, 10) | list + range(99990, 100001) | list) %}
-- Slowdown (S) and the three longest tails (T1 to T3) at fixed percentiles of an ISO week (UTC), by nearest rank:
-- the k-th smallest of n values, k = ceil(q * n). Grain: week_utc, kind, series, percentile.
with observed_hours as (
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'S' as series, slowdown as slowdown
    from {{ source('marts', 'fct_drive_hours') }}
    where slowdown is not null and cast(date_trunc('week', hour_utc) as timestamp) in (select week_utc from {{ source('marts', 'dim_weeks') }})
    union all
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'T1' as series, tail_1 as slowdown from {{ source('marts', 'fct_raid_hours') }}
    union all
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'T2' as series, tail_2 as slowdown from {{ source('marts', 'fct_raid_hours') }}
    union all
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'T3' as series, tail_3 as slowdown from {{ source('marts', 'fct_raid_hours') }}
),

populations as (
    select
        week_utc, kind, series,
        count(*) as population_count,
        {{ nearest_ranks('slowdown', ranks) }} as slowdowns
    from observed_hours
    group by week_utc, kind, series
)

select
    populations.week_utc, populations.kind, populations.series,
    cast(ranks.per_hundred_thousand as double) / 1000 as percentile,
    populations.population_count,
    {{ nth('populations.slowdowns', 'ranks.place') }} as slowdown
from populations
cross join (values {% for rank in ranks %}({{ rank }}, {{ loop.index }}){{ ', ' if not loop.last }}{% endfor %}) as ranks (per_hundred_thousand, place)
