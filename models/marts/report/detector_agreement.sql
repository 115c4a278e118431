{%- set detector_recent_days = 28 %}{#- last days of the fleet that are compared -#}
-- How far two detectors flag the same drives, on any day and in the fleet's last days. Grain: span, detector, other_detector.
with detectors as (
    {{ detectors() }}
),

last_days as (
    select cast(max(last_hour_utc) as date) as last_day_utc
    from {{ ref('dim_raid_groups') }}
),

spans as (
    select 'all' as span, cast('{{ var("beginning_of_time") }}' as date) as first_day_utc
    union all
    select
        'last_{{ detector_recent_days }}_days' as span,
        cast(last_day_utc - interval {{ detector_recent_days - 1 }} day as date) as first_day_utc
    from last_days
),

-- drives that a rule on samples could have flagged
sampled_spans as (
    select distinct spans.span, days.drive_id
    from spans
    inner join {{ ref('int_sampled_days') }} as days on spans.first_day_utc <= days.day_utc
),

flagged_spans as (
    select found.span, found.detector, found.drive_id, sampled_spans.drive_id is not null as is_sampled
    from (
        select distinct spans.span, verdicts.detector, verdicts.drive_id
        from spans
        inner join {{ ref('fct_detector_verdicts') }} as verdicts on spans.first_day_utc <= verdicts.day_utc
        where verdicts.is_flagged
    ) as found
    left join sampled_spans on found.span = sampled_spans.span and found.drive_id = sampled_spans.drive_id
),

-- drives that both of two rules could have flagged; a window that ends in the span may flag a drive that is silent in it
asked_spans as (
    select span, false as is_of_samples, count(*) as drive_count
    from (
        select spans.span, days.drive_id
        from spans
        inner join {{ ref('int_drive_days') }} as days on spans.first_day_utc <= days.day_utc
        where days.slowdown_hours > 0
        union
        select span, drive_id from flagged_spans
    ) as seen
    group by span
    union all
    select span, true as is_of_samples, count(*) as drive_count
    from sampled_spans
    group by span
),

-- where one of two looks at samples, the other counts where there are any
flag_counts as (
    select span, detector, false as is_of_samples, count(*) as flagged_count
    from flagged_spans
    group by span, detector
    union all
    select span, detector, true as is_of_samples, count(*) as flagged_count
    from flagged_spans
    where is_sampled
    group by span, detector
),

compared_detectors as (
    select
        detectors.detector,
        others.detector as other_detector,
        detectors.is_of_samples or others.is_of_samples as is_of_samples
    from detectors
    inner join detectors as others on detectors.detector < others.detector
),

common_counts as (
    select flagged_spans.span, flagged_spans.detector, others.detector as other_detector, count(*) as both_count
    from flagged_spans
    inner join flagged_spans as others on flagged_spans.span = others.span and flagged_spans.drive_id = others.drive_id and flagged_spans.detector < others.detector
    group by flagged_spans.span, flagged_spans.detector, others.detector
),

pairs as (
    select
        spans.span,
        detectors.detector, detectors.other_detector,
        coalesce(asked_spans.drive_count, 0) as drive_count,
        coalesce(counts.flagged_count, 0) as flagged_count,
        coalesce(other_counts.flagged_count, 0) as other_flagged_count,
        coalesce(common_counts.both_count, 0) as both_count
    from spans
    cross join compared_detectors as detectors
    left join asked_spans on spans.span = asked_spans.span and detectors.is_of_samples = asked_spans.is_of_samples
    left join flag_counts as counts
        on spans.span = counts.span and detectors.detector = counts.detector and detectors.is_of_samples = counts.is_of_samples
    left join flag_counts as other_counts
        on spans.span = other_counts.span
        and detectors.other_detector = other_counts.detector
        and detectors.is_of_samples = other_counts.is_of_samples
    left join common_counts
        on spans.span = common_counts.span
        and detectors.detector = common_counts.detector
        and detectors.other_detector = common_counts.other_detector
),

compared_pairs as (
    select
        *,
        flagged_count + other_flagged_count - both_count as either_count,
        -- drive_count squared times the share that would agree by chance
        flagged_count * other_flagged_count + (drive_count - flagged_count) * (drive_count - other_flagged_count) as chance
    from pairs
)

select
    span, detector, other_detector, drive_count, flagged_count, other_flagged_count, both_count, either_count,
    cast(both_count as double) / nullif(either_count, 0) as jaccard,
    cast(drive_count * (drive_count - either_count + both_count) - chance as double)
    / nullif(drive_count * drive_count - chance, 0) as kappa
from compared_pairs
