-- Values at percentiles by nearest rank, and at the ends of Woodruff's interval. Grain: measure, class, kind, per_hundred_thousand.
with ranked_values as (
    select
        measure, class, kind, value,
        row_number() over (partition by measure, class, kind order by value) as value_rank,
        count(*) over (partition by measure, class, kind) as value_count
    from {{ ref('int_study__values') }}
),

cumulated_values as (
    select
        measure, class, kind, edge, value_count,
        sum(value_count) over (partition by measure, class, kind order by edge rows between unbounded preceding and current row) as last_rank
    from {{ ref('int_study__counted_values') }}
),

exact_counts as (
    select distinct measure, class, kind, value_count from ranked_values
),

binned_counts as (
    select measure, class, kind, sum(value_count) as value_count
    from cumulated_values
    group by measure, class, kind
),

populations as (
    select
        coalesce(binned.measure, exact.measure) as measure,
        coalesce(binned.class, exact.class) as class,
        coalesce(binned.kind, exact.kind) as kind,
        cast(coalesce(binned.value_count, 0) as bigint) as binned_count,
        cast(coalesce(binned.value_count, 0) + coalesce(exact.value_count, 0) as bigint) as population
    from binned_counts as binned
    full join exact_counts as exact on binned.measure = exact.measure and binned.class = exact.class and binned.kind = exact.kind
),

wanted_measures as (
    select distinct
        populations.measure, populations.class, populations.kind, populations.binned_count, populations.population,
        measures.x as per_hundred_thousand,
        -- k = ceil(q * n), in integers
        cast(floor((measures.x * populations.population + 99999) / 100000) as bigint) as value_rank
    from {{ ref('study_measures') }} as measures
    inner join populations on measures.measure = populations.measure and measures.class = populations.class
    where measures.estimate = 'percentile'
),

estimates as (
    select wanted_measures.*, coalesce(cumulated_values.edge, ranked_values.value) as value
    from wanted_measures
    left join cumulated_values
        on wanted_measures.measure = cumulated_values.measure
        and wanted_measures.class = cumulated_values.class
        and wanted_measures.kind = cumulated_values.kind
        and wanted_measures.value_rank <= cumulated_values.last_rank
        and wanted_measures.value_rank > cumulated_values.last_rank - cumulated_values.value_count
    left join ranked_values
        on wanted_measures.measure = ranked_values.measure
        and wanted_measures.class = ranked_values.class
        and wanted_measures.kind = ranked_values.kind
        and wanted_measures.value_rank - wanted_measures.binned_count = ranked_values.value_rank
),

-- how much the hours of a RAID group depend on each other, where the study counts nearest below the value
effects as (
    select
        estimates.measure, estimates.class, estimates.kind, estimates.per_hundred_thousand,
        case when shares.share_low is not null then shares.effective_count / shares.denominator end as independence,
        row_number() over (
            partition by estimates.measure, estimates.class, estimates.kind, estimates.per_hundred_thousand
            order by
                case when shares.x <= estimates.value then 0 else 1 end,
                case when shares.x <= estimates.value then -shares.x else shares.x end
        ) as nearness
    from estimates
    inner join {{ ref('int_study__dependence') }} as shares
        on estimates.measure = shares.measure
        and estimates.class = shares.class
        and estimates.kind = shares.kind
),

spreads as (
    select
        estimates.*,
        estimates.per_hundred_thousand / 100000 as share,
        greatest(estimates.population * effects.independence, 1.0) as effective_count
    from estimates
    inner join effects
        on estimates.measure = effects.measure
        and estimates.class = effects.class
        and estimates.kind = effects.kind
        and estimates.per_hundred_thousand = effects.per_hundred_thousand
        and effects.nearness = 1
    where effects.independence is not null
),

ends as (
    select
        measure, class, kind, per_hundred_thousand, binned_count,
        'low' as side,
        greatest(cast(ceil(population * {{ wilson_low('share', 'effective_count') }}) as bigint), 1) as value_rank
    from spreads
    union all
    select
        measure, class, kind, per_hundred_thousand, binned_count,
        'high' as side,
        greatest(cast(ceil(population * {{ wilson_high('share', 'effective_count') }}) as bigint), 1) as value_rank
    from spreads
),

end_values as (
    select
        ends.measure, ends.class, ends.kind, ends.per_hundred_thousand,
        max(case when ends.side = 'low' then coalesce(cumulated_values.edge, ranked_values.value) end) as value_low,
        max(case when ends.side = 'high' then coalesce(cumulated_values.edge, ranked_values.value) end) as value_high
    from ends
    left join cumulated_values
        on ends.measure = cumulated_values.measure
        and ends.class = cumulated_values.class
        and ends.kind = cumulated_values.kind
        and ends.value_rank <= cumulated_values.last_rank
        and ends.value_rank > cumulated_values.last_rank - cumulated_values.value_count
    left join ranked_values
        on ends.measure = ranked_values.measure
        and ends.class = ranked_values.class
        and ends.kind = ranked_values.kind
        and ends.value_rank - ends.binned_count = ranked_values.value_rank
    group by ends.measure, ends.class, ends.kind, ends.per_hundred_thousand
)

select
    estimates.measure, estimates.class, estimates.kind, estimates.per_hundred_thousand,
    estimates.population - estimates.value_rank as above_count,
    estimates.population, estimates.value,
    end_values.value_low, end_values.value_high
from estimates
left join end_values
    on estimates.measure = end_values.measure
    and estimates.class = end_values.class
    and estimates.kind = end_values.kind
    and estimates.per_hundred_thousand = end_values.per_hundred_thousand
