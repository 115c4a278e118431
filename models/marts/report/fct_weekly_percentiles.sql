{{ config(meta={'by_week': {'column': 'week_utc'}}) }}
-- Slowdown (S) and the three longest tails (T1 to T3) at fixed percentiles of an ISO week (UTC), by nearest rank:
-- the k-th smallest of n values, k = ceil(q * n). Grain: week_utc, kind, series, percentile.
with observed as (
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'S' as series, slowdown as slowdown
    from {{ ref('fct_drive_hours') }}
    where slowdown is not null and {{ is_whole_week('hour_utc') }}
    union all
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'T1' as series, tail_1 as slowdown from {{ ref('fct_raid_hours') }}
    union all
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'T2' as series, tail_2 as slowdown from {{ ref('fct_raid_hours') }}
    union all
    select cast(date_trunc('week', hour_utc) as timestamp) as week_utc, kind, 'T3' as series, tail_3 as slowdown from {{ ref('fct_raid_hours') }}
),

ranked as (
    select
        week_utc,
        kind,
        series,
        slowdown,
        row_number() over (partition by week_utc, kind, series order by slowdown) as value_rank,
        count(*) over (partition by week_utc, kind, series) as population_count
    from observed
),

populations as (
    select distinct week_utc, kind, series, population_count from ranked
),

wanted as (
    select
        populations.week_utc,
        populations.kind,
        populations.series,
        populations.population_count,
        ranks.per_hundred_thousand,
        -- k = ceil(q * n), at least 1, in integers: a decimal q in floating point would miss ranks by one
        greatest(cast(floor((ranks.per_hundred_thousand * populations.population_count + 99999) / 100000) as bigint), 1) as value_rank
    from populations
    cross join {{ ref('percentile_ranks') }} as ranks
)

select
    wanted.week_utc,
    wanted.kind,
    wanted.series,
    cast(wanted.per_hundred_thousand as double) / 1000 as percentile,
    wanted.population_count,
    ranked.slowdown
from wanted
inner join ranked
    on wanted.week_utc = ranked.week_utc
    and wanted.kind = ranked.kind
    and wanted.series = ranked.series
    and wanted.value_rank = ranked.value_rank
