{{ config(meta={'made': 'each_day'}) }}
-- Slow hours that each differing SMART attribute would have foreseen, and that a drive's slow history would have. Grain: kind, rule, attribute, measure.
with differing_attributes as (
    select kind, attribute, measure, effect
    from {{ ref('health_comparison') }}
    where scope = 'all' and is_different
),

scored_values as (
    select
        numbers.drive_id, numbers.day_utc, numbers.kind, numbers.model, numbers.attribute, numbers.measure, numbers.is_slow,
        cast(numbers.value * sign(differing_attributes.effect) as double) as score
    from {{ ref('int_health__values') }} as numbers
    inner join differing_attributes
        on numbers.kind = differing_attributes.kind and numbers.attribute = differing_attributes.attribute and numbers.measure = differing_attributes.measure
),

limits as (
    select
        kind, model, attribute, measure,
        percentile_cont({{ 1 - var('health_unusual_share') | float }}) within group (order by score) as limit_score
    from scored_values
    where not is_slow
    group by kind, model, attribute, measure
),

warned_drives as (
    select scored_values.drive_id, scored_values.day_utc, scored_values.attribute, scored_values.measure
    from scored_values
    inner join limits
        on scored_values.kind = limits.kind
        and scored_values.model = limits.model
        and scored_values.attribute = limits.attribute
        and scored_values.measure = limits.measure
    where scored_values.score > limits.limit_score
),

days as (
    select drive_id, day_utc, max(kind) as kind, max(is_slow) as is_slow
    from {{ ref('int_health__values') }}
    group by drive_id, day_utc
),

followed_days as (
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

ruled_days as (
    select
        followed_days.*,
        'slow_history' as rule,
        cast(null as string) as attribute,
        cast(null as string) as measure,
        is_slow or last_slow_day > cast(day_utc - interval {{ var('health_history_days') }} day as date) as is_warned
    from followed_days
    union all
    select
        followed_days.*,
        'attribute' as rule,
        differing_attributes.attribute, differing_attributes.measure,
        warned_drives.drive_id is not null as is_warned
    from followed_days
    inner join differing_attributes on followed_days.kind = differing_attributes.kind
    left join warned_drives
        on followed_days.drive_id = warned_drives.drive_id
        and followed_days.day_utc = warned_drives.day_utc
        and differing_attributes.attribute = warned_drives.attribute
        and differing_attributes.measure = warned_drives.measure
),

judged_days as (
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
    from ruled_days
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
    from judged_days
    group by kind, rule, attribute, measure
)

select
    *,
    cast(right_days as double) / nullif(warned_days, 0) as precision_ratio,
    cast(caught_onset_count as double) / nullif(onset_count, 0) as recall,
    cast(first_right_days as double) / nullif(first_warned_days, 0) as first_precision,
    cast(caught_first_onset_count as double) / nullif(first_onset_count, 0) as first_recall
from totals
