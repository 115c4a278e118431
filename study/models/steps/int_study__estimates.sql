-- This fleet's value for every number of the study, in its unit. Grain: id, kind.
with wanted_numbers as (
    select refs.id, kinds.kind, measures.estimate, measures.measure, measures.class, measures.x
    from {{ ref('paper_numbers') }} as refs
    inner join {{ ref('study_measures') }} as measures on refs.id = measures.id
    inner join (select 'disk' as kind union all select 'ssd' as kind) as kinds on refs.subject in (kinds.kind, 'both')
),

shares as (
    select * from {{ ref('int_study__shares') }}
),

-- several classes stand for one number: the one with the least or the greatest share
candidates as (
    select
        wanted_numbers.id, wanted_numbers.kind, wanted_numbers.estimate,
        shares.numerator, shares.denominator, shares.share, shares.share_low, shares.share_high,
        row_number() over (
            partition by wanted_numbers.id, wanted_numbers.kind
            order by
                case when wanted_numbers.estimate = 'least_share' then shares.share else -shares.share end,
                instr(',' || wanted_numbers.class || ',', ',' || shares.class || ',')
        ) as choice
    from wanted_numbers
    inner join shares
        on wanted_numbers.measure = shares.measure
        and wanted_numbers.kind = shares.kind
        and coalesce(wanted_numbers.x, -1) = coalesce(shares.x, -1)
        and instr(',' || wanted_numbers.class || ',', ',' || shares.class || ',') > 0
    where wanted_numbers.estimate in ('count', 'share', 'complement', 'percentile_of', 'least_share', 'greatest_share', 'complement_of_greatest')
),

-- Finding 11 takes percentiles off each other: shares below, not above
compared_shares as (
    select measure, class, x, kind, numerator, denominator, share, share_low, share_high
    from shares
    where measure = 'rio'
    union all
    select
        measure, class, x, kind,
        denominator - numerator as numerator,
        denominator,
        1 - share as share,
        1 - share_high as share_low,
        1 - share_low as share_high
    from shares
    where measure = 'slowdown'
),

differences as (
    select
        wanted_numbers.id, wanted_numbers.kind,
        shares.numerator, shares.denominator,
        shares.share - others.share as share,
        -- Newcombe's interval of a difference
        (shares.share - others.share)
        - sqrt(power(shares.share - shares.share_low, 2) + power(others.share_high - others.share, 2)) as share_low,
        (shares.share - others.share)
        + sqrt(power(shares.share_high - shares.share, 2) + power(others.share - others.share_low, 2)) as share_high,
        'less ' || cast(others.numerator as string) || ' of ' || cast(others.denominator as string) || ' (' || others.class || ')' as reason
    from wanted_numbers
    inner join compared_shares as shares
        on wanted_numbers.measure = shares.measure and wanted_numbers.class = shares.class and wanted_numbers.kind = shares.kind and wanted_numbers.x = shares.x
    inner join compared_shares as others
        on wanted_numbers.measure = others.measure
        and wanted_numbers.kind = others.kind
        and wanted_numbers.x = others.x
        and others.class = case wanted_numbers.class when 'stable_to_tail' then 'stable_to_stable' when 'SLC' then 'MLC' end
    where wanted_numbers.estimate = 'difference'
)

select
    id, kind, numerator, denominator,
    100 * share as value,
    100 * share_low as ci_low,
    100 * share_high as ci_high,
    cast(null as string) as reason
from candidates
where choice = 1 and estimate in ('share', 'least_share', 'greatest_share')
union all
select
    id, kind, numerator, denominator,
    cast(numerator as double) as value,
    cast(null as double) as ci_low,
    cast(null as double) as ci_high,
    cast(null as string) as reason
from candidates
where choice = 1 and estimate = 'count'
union all
select
    id, kind,
    denominator - numerator as numerator,
    denominator,
    100 * (cast(denominator - numerator as double) / denominator) as value,
    100 * (1 - share_high) as ci_low,
    100 * (1 - share_low) as ci_high,
    cast(null as string) as reason
from candidates
where choice = 1 and estimate in ('complement', 'percentile_of', 'complement_of_greatest')
union all
select
    id, kind, numerator, denominator,
    100 * share as value,
    100 * share_low as ci_low,
    100 * share_high as ci_high,
    reason
from differences
union all
select
    wanted_numbers.id, wanted_numbers.kind,
    cast(null as bigint) as numerator,
    percentiles.population as denominator,
    percentiles.value,
    percentiles.value_low as ci_low,
    percentiles.value_high as ci_high,
    cast(null as string) as reason
from wanted_numbers
inner join {{ ref('int_study__percentiles') }} as percentiles
    on wanted_numbers.measure = percentiles.measure
    and wanted_numbers.class = percentiles.class
    and wanted_numbers.kind = percentiles.kind
    and wanted_numbers.x = percentiles.per_hundred_thousand
where wanted_numbers.estimate = 'percentile'
union all
select
    wanted_numbers.id, wanted_numbers.kind,
    cast(null as bigint) as numerator,
    cast(null as bigint) as denominator,
    sizes.size as value,
    cast(null as double) as ci_low,
    cast(null as double) as ci_high,
    cast(null as string) as reason
from wanted_numbers
inner join {{ ref('int_study__sizes') }} as sizes on wanted_numbers.measure = sizes.measure and wanted_numbers.kind = sizes.kind
where wanted_numbers.estimate = 'size'
