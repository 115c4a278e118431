{{ config(schema='marts') }}
{%- set comparable_factor = 1.25 %}{#- an estimate further from the paper's number does not agree, however wide its interval -#}
-- Every number of the study beside this fleet's own. Grain: id, kind.
with judged_numbers as (
    select
        refs.id,
        kinds.kind,
        refs.metric, refs.unit, refs.operator,
        measures.judged_as, measures.x,
        case
            when measures.judged_as not in ('not comparable', 'statement')
                then nullif(
                    min(refs.id) over (partition by measures.estimate, measures.measure, measures.class, measures.x, kinds.kind), refs.id
                )
        end as same_as,
        measures.reason as comparison_reason,
        estimates.numerator, estimates.denominator, estimates.value, estimates.ci_low, estimates.ci_high,
        estimates.reason as estimate_reason,
        statements.numerator as statement_numerator,
        statements.denominator as statement_denominator,
        statements.value as statement_value,
        statements.verdict as statement_verdict,
        statements.reason as statement_reason,
        -- words and lists have no value
        {{ number_or_null('coalesce(measures.compared_with, refs.value)') }} as paper_value,
        case
            when instr(coalesce(measures.compared_with, refs.value), '.') > 0
                then 0.5 * power(10.0, instr(coalesce(measures.compared_with, refs.value), '.') - length(coalesce(measures.compared_with, refs.value)))
            else 0.5
        end as paper_half_digit
    from {{ ref('paper_numbers') }} as refs
    inner join {{ ref('study_measures') }} as measures on refs.id = measures.id
    inner join (select 'disk' as kind union all select 'ssd' as kind) as kinds on refs.subject in (kinds.kind, 'both')
    left join {{ ref('int_study__estimates') }} as estimates on refs.id = estimates.id and kinds.kind = estimates.kind
    left join {{ ref('int_study__statements') }} as statements
        on measures.judged_as = 'statement' and measures.measure = statements.measure and kinds.kind = statements.kind
),

compared_numbers as (
    select
        *,
        -- of what the paper saw in all there is no rarer side
        denominator * case
            when judged_as = 'value' then (100000 - x) / 100000
            when paper_value in (0, 100) then 1
            else least(paper_value, 100 - paper_value) / 100
        end as expected_events,
        (operator in ('>=', '>') or ci_low <= paper_value + paper_half_digit)
        and (operator in ('<=', '<') or ci_high >= paper_value - paper_half_digit) as is_met,
        -- of a percentile the share above it is compared
        case judged_as when 'percentile' then 100 - value else value end as compared_value,
        case judged_as when 'percentile' then 100 - paper_value else paper_value end as compared_paper_value
    from judged_numbers
),

-- at least, or at most, in the paper: no value on that side contradicts it
placed_numbers as (
    select
        *,
        (operator in ('>=', '>') or compared_value <= {{ comparable_factor }} * compared_paper_value)
        and (operator in ('<=', '<') or compared_paper_value <= {{ comparable_factor }} * compared_value) as is_near
    from compared_numbers
)

select
    id, kind, metric, unit,
    coalesce(statement_numerator, numerator) as numerator,
    coalesce(statement_denominator, denominator) as denominator,
    coalesce(statement_value, value) as value,
    ci_low, ci_high, paper_value,
    case
        when judged_as = 'not comparable' then 'not comparable'
        when judged_as = 'statement' then coalesce(statement_verdict, 'no data')
        when coalesce(denominator, 0) = 0 or expected_events < {{ var('fewest_expected_events') }} then 'no data'
        when ci_low is null then 'cannot tell'
        when not is_met then 'differs'
        when is_near then 'agrees'
        else 'cannot tell'
    end as verdict,
    case
        when judged_as = 'not comparable' then comparison_reason
        when judged_as = 'statement' then coalesce(statement_reason, 'nothing of this kind was observed')
        when coalesce(denominator, 0) = 0 then 'nothing of this kind was observed'
        when expected_events < {{ var('fewest_expected_events') }}
            then 'at the paper''s value ' || {{ rounded_text('expected_events', 1) }} || ' events are expected: too few to tell'
        when ci_low is null then 'fewer than {{ least_groups() }} RAID groups: no interval'
        when not is_met then 'the interval does not reach the paper''s value'
        when not is_near then 'more than a factor {{ comparable_factor }} from the paper''s value, which the interval holds'
        else estimate_reason
    end as reason,
    same_as
from placed_numbers
