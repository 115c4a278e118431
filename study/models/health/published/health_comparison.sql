{{ config(meta={'made': 'each_day'}) }}
-- Which SMART attributes differ between slow and other drive-days of the same model. Grain: kind, scope, model, attribute, measure.
with numbered_values as (
    select *, count(effect_error) over () as comparison_count
    from {{ ref('int_health__compared') }}
),

limited_values as (
    select
        *,
        -- Bonferroni: each interval leaves out its share of what all may leave out together, half at each end
        case
            when effect_error is not null
                then effect_error * {{ student_limit('cast(1 - ' ~ var('health_confidence') ~ ' as double) / 2 / comparison_count', '(slow_raid_groups - 1)') }}
        end as reach
    from numbered_values
)

select
    kind, scope, model, attribute, measure, slow_drive_days, other_drive_days, slow_raid_groups, effect,
    case when reach is not null then greatest(effect - reach, -1.0) end as effect_low,
    case when reach is not null then least(effect + reach, 1.0) end as effect_high,
    comparison_count,
    case when reach is not null then abs(effect) > reach end as is_different
from limited_values
