{%- set candidate_default_credibility = 0.5 %}{#- weight of a drive's own rate until any outcome is known -#}
{%- set candidate_least_share = 0.05 %}{#- no drive is expected to cause less than this share of its kind's mean -#}
{%- set candidate_level_edges = [1, 4, 16, 64] %}{#- of a drive's own rate, tail hours in 28 days -#}
{%- set candidate_chronic_edges = [0.1, 0.5, 0.9] %}{#- of the share of its hours in 28 days at chronic_slowdown or more -#}
{%- set classes = var('candidate_classes') %}
{%- set class_columns %}{% for class in classes %}{{ class }}_class{{ ", " if not loop.last }}{% endfor %}{% endset %}
-- Tail hours expected of each drive in the 28 days after a week boundary, by what was known then: its own weighted rate, drawn
-- towards that of its kind (credibility), times what drives of each of its classes did beside what was expected of them (marginal totals).
-- Grain: drive_id, boundary_utc.
with drive_weeks as (
    select
        drive_weeks.*,
        outcomes.tail_hours_caused_after,
        cast(round(drive_weeks.own_tail_hours * 100) as bigint) as own_hundredths,
        case
            when drive_weeks.own_tail_hours = 0 then 'none'
{%- for edge in candidate_level_edges %}
            when drive_weeks.own_tail_hours < {{ edge }} then 'below {{ edge }}'
{%- endfor %}
            else '{{ candidate_level_edges[-1] }} and more'
        end as level_class,
        case
            when drive_weeks.latest_tail_hour_utc >= drive_weeks.boundary_utc - interval 1 day then 'day'
            when drive_weeks.latest_tail_hour_utc >= drive_weeks.boundary_utc - interval 7 day then 'week'
            when drive_weeks.latest_tail_hour_utc >= drive_weeks.boundary_utc - interval 28 day then '28 days'
            when drive_weeks.latest_tail_hour_utc is not null then 'earlier'
            else 'never'
        end as recency_class,
        cast(drive_weeks.tail_weeks_28d as string) as persistence_class,
        case
            when drive_weeks.slow_hours_28d = 0 then 'not slow'
            when drive_weeks.recurrence_count_28d = 0 then 'none within a day'
            when drive_weeks.recurrence_count_28d < 3 then 'some'
            else 'often'
        end as recurrence_class,
        case when 2 * drive_weeks.together_hours_28d > drive_weeks.slow_hours_28d then 'together' else 'alone' end as together_class,
        case
{%- for edge in candidate_chronic_edges %}
            when drive_weeks.chronic_hours_28d < {{ edge }} * drive_weeks.drive_hours_28d then 'below {{ edge }}'
{%- endfor %}
            else '{{ candidate_chronic_edges[-1] }} and more'
        end as chronic_class,
        case
            when drive_weeks.unplug_count = 0 then 'never unplugged'
            when drive_weeks.wait_hours is null then 'not slow before'
            when drive_weeks.wait_hours <= 24 then 'within a day'
            when drive_weeks.wait_hours <= 168 then 'within a week'
            else 'later'
        end as wait_class,
        case
            when not drive_weeks.is_replugged then 'never replugged'
            when drive_weeks.recur_hours is null then 'not slow since'
            when drive_weeks.recur_hours <= 24 then 'slow within a day'
            else 'slow later'
        end as replug_class,
        coalesce(cast(drive_weeks.age_year as string), 'unknown') as age_class,
        coalesce(drive_weeks.model, 'unknown') as model_class
    from {{ ref('int_drive_weeks') }} as drive_weeks
    left join {{ ref('int_drive_weeks__outcomes') }} as outcomes
        on drive_weeks.drive_id = outcomes.drive_id and drive_weeks.boundary_utc = outcomes.boundary_utc
),

-- drives alike in every class, week by week; then what is known of them at each later boundary
cells as (
    select
        kind,
        week_no,
        {{ class_columns }},
        count(*) as drive_count,
        cast(sum(own_hundredths) as bigint) as own_hundredths,
        cast(sum(own_hundredths * own_hundredths) as decimal(38, 0)) as squared_hundredths,
        cast(sum(own_hundredths * tail_hours_caused_after) as bigint) as crossed_hundredths,
        cast(sum(tail_hours_caused_after) as bigint) as tail_hours_caused_after
    from drive_weeks
    where tail_hours_caused_after is not null
    group by kind, week_no, {{ class_columns }}
),

boundaries as (
    select distinct kind, week_no from drive_weeks
),

known as (
    select
        boundaries.kind,
        boundaries.week_no,
        {{ class_columns }},
        cast(sum(cells.drive_count) as bigint) as drive_count,
        cast(sum(cells.own_hundredths) as bigint) as own_hundredths,
        cast(sum(cells.squared_hundredths) as decimal(38, 0)) as squared_hundredths,
        cast(sum(cells.crossed_hundredths) as bigint) as crossed_hundredths,
        cast(sum(cells.tail_hours_caused_after) as bigint) as tail_hours_caused_after
    from boundaries
    inner join cells
        on boundaries.kind = cells.kind
        and {{ is_known_by('cells', 'boundaries') }}
    group by boundaries.kind, boundaries.week_no, {{ class_columns }}
),

kind_sums as (
    select
        kind,
        week_no,
        cast(sum(drive_count) as double) as n,
        cast(sum(own_hundredths) as double) / 100.0 as x,
        cast(sum(squared_hundredths) as double) / 10000.0 as xx,
        cast(sum(crossed_hundredths) as double) / 100.0 as xy,
        cast(sum(tail_hours_caused_after) as double) as y
    from known
    group by kind, week_no
),

-- the share of a drive's difference from its kind that stays: slope of what came on what had been
slopes as (
    select
        boundaries.kind,
        boundaries.week_no,
        cast(coalesce(kind_sums.n, 0.0) as bigint) as training_drive_weeks,
        coalesce(kind_sums.x / kind_sums.n, 0.0) as mean_own,
        coalesce(kind_sums.y / kind_sums.n, 0.0) as mean_after,
        kind_sums.n * kind_sums.xx - kind_sums.x * kind_sums.x as variation,
        kind_sums.n * kind_sums.xy - kind_sums.x * kind_sums.y as covariation
    from boundaries
    left join kind_sums on boundaries.kind = kind_sums.kind and boundaries.week_no = kind_sums.week_no
),

believed as (
    select
        *,
        case
            when variation > 0 then least(greatest(covariation / variation, 0.0), 1.0)
            else {{ candidate_default_credibility }}
        end as credibility
    from slopes
),

credibilities as (
    select
        kind,
        week_no,
        training_drive_weeks,
        credibility,
        greatest(mean_after - credibility * mean_own, {{ candidate_least_share }} * mean_after) as floor_tail_hours
    from believed
),

known_0 as (
    select
        known.kind,
        known.week_no,
        {{ class_columns }},
        cast(known.tail_hours_caused_after as double) as y,
        known.drive_count * credibilities.floor_tail_hours + credibilities.credibility * known.own_hundredths / 100.0 as expected_0
    from known
    inner join credibilities on known.kind = credibilities.kind and known.week_no = credibilities.week_no
)
{%- for class in classes %},

known_{{ loop.index }} as (
    select *, expected_{{ loop.index0 }} * factor_{{ loop.index }} as expected_{{ loop.index }}
    from (
        select
            *,
            (sum(y) over (partition by kind, week_no, {{ class }}_class) + {{ var('candidate_factor_prior_hours') }})
            -- in millionths of an hour, which add up in any order
            / (
                cast(sum(cast(round(1000000 * expected_{{ loop.index0 }}) as bigint)) over (partition by kind, week_no, {{ class }}_class) as double) / 1000000.0
                + {{ var('candidate_factor_prior_hours') }}
            ) as factor_{{ loop.index }}
        from known_{{ loop.index0 }}
    ) as known
)
{%- endfor %}
{%- for class in classes %},

factors_{{ loop.index }} as (
    select distinct kind, week_no, {{ class }}_class, factor_{{ loop.index }} as factor from known_{{ classes | length }}
)
{%- endfor %}

select
    drive_weeks.drive_id,
    drive_weeks.boundary_utc,
    drive_weeks.week_no,
    drive_weeks.kind,
    drive_weeks.raid_group_id,
    drive_weeks.model,
    drive_weeks.age_year,
    drive_weeks.drive_hours_28d,
    drive_weeks.chronic_hours_28d,
    drive_weeks.slow_hours_28d,
    drive_weeks.last_day_max_slowdown,
    drive_weeks.recurrence_count_28d,
    drive_weeks.together_hours_28d,
    drive_weeks.tail_hours_caused_28d,
    drive_weeks.tail_weeks_28d,
    drive_weeks.latest_tail_hour_utc,
    drive_weeks.unplug_count,
    drive_weeks.wait_hours,
    drive_weeks.recur_hours,
    drive_weeks.own_tail_hours,
    credibilities.training_drive_weeks,
    credibilities.credibility,
    credibilities.floor_tail_hours + credibilities.credibility * drive_weeks.own_hundredths / 100.0 as credible_tail_hours,
{%- for class in classes %}
    drive_weeks.{{ class }}_class,
    coalesce(factors_{{ loop.index }}.factor, 1.0) as {{ class }}_factor,
{%- endfor %}
    (credibilities.floor_tail_hours + credibilities.credibility * drive_weeks.own_hundredths / 100.0)
{%- for class in classes %}
    * coalesce(factors_{{ loop.index }}.factor, 1.0)
{%- endfor %} as expected_tail_hours,
    drive_weeks.tail_hours_caused_after
from drive_weeks
inner join credibilities on drive_weeks.kind = credibilities.kind and drive_weeks.week_no = credibilities.week_no
{%- for class in classes %}
left join factors_{{ loop.index }}
    on drive_weeks.kind = factors_{{ loop.index }}.kind
    and drive_weeks.week_no = factors_{{ loop.index }}.week_no
    and drive_weeks.{{ class }}_class = factors_{{ loop.index }}.{{ class }}_class
{%- endfor %}
