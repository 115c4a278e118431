-- The headlines under other rules, beside the ones of study_results. Grain: variant, id, kind.
with all_shares as (
    select * from {{ ref('int_study__shares') }}
),

shares as (
    select
        case
            when measure like 'variant: %' then substring(measure, 10)
            else 'window ' || cast(cast(x as bigint) as string) || ' h'
        end as variant,
        case measure when 'event_then_slow' then 'F09-02' when 'slow_hour_with_event' then 'F09-01' else class end as id,
        kind, numerator, denominator, share, share_low, share_high
    from all_shares
    where kind in ('disk', 'ssd')
        -- the headline looks an hour around a drive event
        and (measure like 'variant: %' or (measure in ('event_then_slow', 'slow_hour_with_event') and x <> 1))
),

-- how many times as common among slow hours as among all
lifts as (
    select
        'lift' as variant,
        shares.id, shares.kind,
        slow_hours.numerator, slow_hours.denominator,
        slow_hours.share / nullif(shares.share, 0.0) as lift
    from shares
    inner join all_shares as slow_hours
        on shares.kind = slow_hours.kind
        and slow_hours.x = {{ var('imbalanced') }}
        and slow_hours.measure = case when shares.id = 'F08-02' then 'slow_rate_imbalance' else 'slow_size_imbalance' end
    where shares.variant = 'unconditional'
)

select
    shares.variant, shares.id, shares.kind,
    'percent' as unit,
    shares.numerator, shares.denominator,
    100 * shares.share as value,
    100 * shares.share_low as ci_low,
    100 * shares.share_high as ci_high
from shares
union all
select
    variant, id, kind,
    'ratio' as unit,
    numerator, denominator,
    lift as value,
    cast(null as double) as ci_low,
    cast(null as double) as ci_high
from lifts
union all
select
    'Kaplan-Meier' as variant,
    id, kind,
    'percent' as unit,
    numerator, denominator, value,
    cast(null as double) as ci_low,
    cast(null as double) as ci_high
from {{ ref('int_study__survivals') }}
