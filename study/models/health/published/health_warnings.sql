{{ config(meta={'made': 'each_day'}) }}
-- Slow hours that each differing SMART attribute would have foreseen, and that a drive's slow history would have. Grain: kind, rule, attribute, measure.
with differing as (
    select kind, attribute, measure, effect
    from {{ ref('health_comparison') }}
    where scope = 'all' and is_different
),

scored as (
    select
        numbers.drive_id, numbers.day_utc, numbers.kind, numbers.model, numbers.attribute, numbers.measure, numbers.is_slow,
        cast(numbers.value * sign(differing.effect) as double) as score
    from {{ ref('int_health__values') }} as numbers
    inner join differing
        on numbers.kind = differing.kind and numbers.attribute = differing.attribute and numbers.measure = differing.measure
),

limits as (
    select
        kind, model, attribute, measure,
        percentile_cont({{ 1 - var('health_unusual_share') | float }}) within group (order by score) as limit_score
    from scored
    where not is_slow
    group by kind, model, attribute, measure
),

warned as (
    select scored.drive_id, scored.day_utc, scored.attribute, scored.measure
    from scored
    inner join limits
        on scored.kind = limits.kind
        and scored.model = limits.model
        and scored.attribute = limits.attribute
        and scored.measure = limits.measure
    where scored.score > limits.limit_score
),

days as (
    select drive_id, day_utc, max(kind) as kind, max(is_slow) as is_slow
    from {{ ref('int_health__values') }}
    group by drive_id, day_utc
),

followed as (
    select
        *,
        lag(day_utc) over (partition by drive_id order by day_utc) as day_before,
        max(case when is_slow then day_utc end) over (
            partition by drive_id order by day_utc rows between unbounded preceding and 1 preceding
        ) as last_slow_day,
        min(case when is_slow then day_utc end) over (
            partition by drive_id order by day_utc rows between 1 following and unbounded following
        ) as next_slow_day,
        max(day_utc) over () as fleet_last_day
    from days
),

ruled as (
    select
        followed.*,
        'slow_history' as rule,
        cast(null as string) as attribute,
        cast(null as string) as measure,
        is_slow or last_slow_day > cast(day_utc - interval {{ var('health_history_days') }} day as date) as is_warned
    from followed
    union all
    select
        followed.*,
        'attribute' as rule,
        differing.attribute, differing.measure,
        warned.drive_id is not null as is_warned
    from followed
    inner join differing on followed.kind = differing.kind
    left join warned
        on followed.drive_id = warned.drive_id
        and followed.day_utc = warned.day_utc
        and differing.attribute = warned.attribute
        and differing.measure = warned.measure
),

judged as (
    select
        *,
        -- of the fleet's last days it is not known yet what follows
        is_warned and day_utc <= cast(fleet_last_day - interval {{ var('health_warning_days') }} day as date) as is_counted,
        next_slow_day <= cast(day_utc + interval {{ var('health_warning_days') }} day as date) as is_right,
        last_slow_day is null and not is_slow as is_never_slow,
        is_slow and day_before is not null and coalesce(last_slow_day < day_before, true) as is_onset,
        max(case when is_warned then day_utc end) over (
            partition by rule, attribute, measure, drive_id order by day_utc rows between unbounded preceding and 1 preceding
        ) >= cast(day_utc - interval {{ var('health_warning_days') }} day as date) as is_caught
    from ruled
),

totals as (
    select
        kind, rule, attribute, measure,
        count(case when is_counted then 1 end) as warned_days,
        count(case when is_counted and is_right then 1 end) as right_days,
        count(case when is_counted and is_never_slow then 1 end) as first_warned_days,
        count(case when is_counted and is_never_slow and is_right then 1 end) as first_right_days,
        count(case when is_onset then 1 end) as onset_count,
        count(case when is_onset and is_caught then 1 end) as caught_onset_count,
        count(case when is_onset and last_slow_day is null then 1 end) as first_onset_count,
        count(case when is_onset and last_slow_day is null and is_caught then 1 end) as caught_first_onset_count
    from judged
    group by kind, rule, attribute, measure
)

select
    *,
    cast(right_days as double) / nullif(warned_days, 0) as precision_ratio,
    cast(caught_onset_count as double) / nullif(onset_count, 0) as recall,
    cast(first_right_days as double) / nullif(first_warned_days, 0) as first_precision,
    cast(caught_first_onset_count as double) / nullif(first_onset_count, 0) as first_recall
from totals
