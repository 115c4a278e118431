{#- rounded: half of what is left of 0.8 is not 0.1 in binary -#}
{%- set low, high = ((1 - var('candidate_interval')) / 2) | round(6), ((1 + var('candidate_interval')) / 2) | round(6) %}
-- What is expected of each drive at a week boundary, with two intervals, both from what drives did of which as much had been expected, where that
-- was known by then: of the expectation (what came over what was expected, RAID groups being drawn), and of what the one drive will do (split
-- conformal prediction). Grain: drive_id, boundary_utc.
with banded as (
    select
        *,
        case
{%- for edge in var('candidate_band_edges') %}
            when expected_tail_hours < {{ edge }} then 'below {{ edge }}'
{%- endfor %}
            else '{{ var("candidate_band_edges")[-1] }} and more'
        end as band
    from {{ ref('int_drive_weeks__expected') }}
),

-- in tenths of what was expected, rounded up
outcomes as (
    select
        kind,
        band,
        week_no,
        cast(least(ceil(10 * tail_hours_caused_after / expected_tail_hours), 10000) as bigint) as tenths,
        count(*) as drive_count
    from banded
    where tail_hours_caused_after is not null and training_drive_weeks > 0 and expected_tail_hours > 0
    group by kind, band, week_no, cast(least(ceil(10 * tail_hours_caused_after / expected_tail_hours), 10000) as bigint)
),

boundaries as (
    select distinct kind, band, week_no from banded
),

known as (
    select boundaries.kind, boundaries.band, boundaries.week_no, outcomes.tenths, cast(sum(outcomes.drive_count) as bigint) as drive_count
    from boundaries
    inner join outcomes
        on boundaries.kind = outcomes.kind
        and boundaries.band = outcomes.band
        and {{ is_known_by('outcomes', 'boundaries') }}
    group by boundaries.kind, boundaries.band, boundaries.week_no, outcomes.tenths
),

cumulated as (
    select
        *,
        sum(drive_count) over (
            partition by kind, band, week_no order by tenths rows between unbounded preceding and current row
        ) as drives_until,
        sum(drive_count) over (partition by kind, band, week_no) as outcome_count
    from known
),

-- the ranks of a new one among them: too few leave an end open
ends as (
    select
        kind,
        band,
        week_no,
        cast(max(outcome_count) as bigint) as outcome_count,
        coalesce(
            min(
                case
                    when drives_until >= floor((outcome_count + 1) * {{ low }}) and floor((outcome_count + 1) * {{ low }}) >= 1
                        then greatest(tenths - 1, 0)
                end
            ) / 10.0, 0.0
        ) as low_ratio,
        min(case when drives_until >= ceil((outcome_count + 1) * {{ high }}) then tenths end) / 10.0 as high_ratio
    from cumulated
    group by kind, band, week_no
),

-- whole millionths of an hour, which add up in any order
raid_group_weeks as (
    select
        kind,
        band,
        week_no,
        raid_group_id,
        cast(sum(tail_hours_caused_after) as bigint) as y,
        cast(sum(cast(round(1000000 * expected_tail_hours) as bigint)) as bigint) as e
    from banded
    where tail_hours_caused_after is not null and training_drive_weeks > 0
    group by kind, band, week_no, raid_group_id
),

known_raid_groups as (
    select
        boundaries.kind,
        boundaries.band,
        boundaries.week_no,
        raid_group_weeks.raid_group_id,
        sum(raid_group_weeks.y) as y,
        sum(raid_group_weeks.e) as e
    from boundaries
    inner join raid_group_weeks
        on boundaries.kind = raid_group_weeks.kind
        and boundaries.band = raid_group_weeks.band
        and {{ is_known_by('raid_group_weeks', 'boundaries') }}
    group by boundaries.kind, boundaries.band, boundaries.week_no, raid_group_weeks.raid_group_id
),

sums as (
    select
        kind,
        band,
        week_no,
        cast(count(*) as double) as n,
        cast(sum(y) as double) as y,
        cast(sum(e) as double) / 1000000.0 as e,
        cast(sum(cast(y * y as decimal(38, 0))) as double) as yy,
        cast(sum(cast(y * e as decimal(38, 0))) as double) / 1000000.0 as ye,
        cast(sum(cast(e as decimal(19, 0)) * cast(e as decimal(19, 0))) as double) / 1000000000000.0 as ee
    from known_raid_groups
    group by kind, band, week_no
),

errors as (
    select
        kind,
        band,
        week_no,
        -- by how much such expectations have been off: all of them alike, and each by chance
        sqrt(
            (y / e - 1.0) * (y / e - 1.0)
            + greatest(yy - 2.0 * y / e * ye + y / e * y / e * ee, 0.0) * n / (n - 1) / (e * e)
        ) as deviation
    from sums
    where n >= {{ var('candidate_fewest_raid_groups') }} and e > 0
)

select
    banded.drive_id,
    banded.boundary_utc,
    banded.kind,
    banded.raid_group_id,
    banded.model,
    banded.age_year,
    banded.drive_hours_28d,
    banded.chronic_hours_28d,
    banded.slow_hours_28d,
    banded.last_day_max_slowdown,
    banded.recurrence_count_28d,
    banded.together_hours_28d,
    banded.tail_hours_caused_28d,
    banded.tail_weeks_28d,
    banded.latest_tail_hour_utc,
    banded.unplug_count,
    banded.wait_hours,
    banded.recur_hours,
    banded.own_tail_hours,
    banded.training_drive_weeks,
    banded.band,
    coalesce(ends.outcome_count, 0) as outcome_count,
    banded.expected_tail_hours,
    banded.expected_tail_hours * case
        when errors.deviation is not null then greatest(1.0 - {{ var('candidate_interval_deviations') }} * errors.deviation, 0.0)
    end as expected_low,
    banded.expected_tail_hours * (1.0 + {{ var('candidate_interval_deviations') }} * errors.deviation) as expected_high,
    case when ends.high_ratio is not null then ends.low_ratio * banded.expected_tail_hours end as tail_hours_low,
    ends.high_ratio * banded.expected_tail_hours as tail_hours_high,
    banded.tail_hours_caused_after
from banded
left join ends on banded.kind = ends.kind and banded.band = ends.band and banded.week_no = ends.week_no
left join errors on banded.kind = errors.kind and banded.band = errors.band and banded.week_no = errors.week_no
