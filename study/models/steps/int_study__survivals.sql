-- How long intervals, waits and recurrences last when those that were cut off are not taken for ended (Kaplan-Meier). Grain: id, kind.
with waits as (
    select
        intervals.kind, intervals.drive_id,
        case when intervals.severity = '1.5-2x' then 'mild' else 'slow' end as class,
        min(intervals.wait_hours) as wait_hours,
        min(intervals.started_at) as started_at
    from {{ source('intermediate', 'int_slowdown_intervals') }} as intervals
    where intervals.severity is not null
    group by intervals.kind, intervals.drive_id, case when intervals.severity = '1.5-2x' then 'mild' else 'slow' end
),

durations as (
    select 'interval' as subject, kind, interval_hours as hours, not is_right_censored as is_ended
    from {{ source('intermediate', 'int_slowdown_intervals') }}
    where degree = 'slow'
    union all
    select
        'wait ' || waits.class as subject,
        waits.kind,
        coalesce(waits.wait_hours, {{ hour_index('drives.last_hour_utc') }} - {{ hour_index('waits.started_at') }}) as hours,
        waits.wait_hours is not null as is_ended
    from waits
    inner join {{ source('intermediate', 'int_drives') }} as drives on waits.drive_id = drives.drive_id
    union all
    select
        'recurrence' as subject,
        episodes.kind,
        coalesce(episodes.recur_hours, {{ hour_index('drives.last_hour_utc') }} - {{ hour_index('episodes.replugged_at') }}) as hours,
        episodes.recur_hours is not null as is_ended
    from {{ source('intermediate', 'int_unplug_episodes') }} as episodes
    inner join {{ source('intermediate', 'int_drives') }} as drives on episodes.drive_id = drives.drive_id
    where episodes.is_in_population
        and episodes.replugged_at is not null
        and episodes.preceding_severity in ('2-4x', '4-8x', '8x+')
),

questions as (
    select 'interval' as subject, 'disk' as kind, 'F04-01' as id, 1 as until_hours, true as is_survival
{%- for subject, kind, id, until_hours, is_survival in (
    ('interval', 'ssd', 'F04-02', 1, true), ('interval', 'disk', 'F04-03', 7, true), ('interval', 'ssd', 'F04-04', 7, true),
    ('wait slow', 'disk', 'F14-01', 24, false), ('wait slow', 'ssd', 'F14-02', 24, false),
    ('wait mild', 'disk', 'F14-03', 24, false), ('wait mild', 'ssd', 'F14-04', 24, false),
    ('recurrence', 'disk', 'F15-03', 24, false), ('recurrence', 'ssd', 'F15-04', 24, false)
) %}
    union all
    select '{{ subject }}' as subject, '{{ kind }}' as kind, '{{ id }}' as id, {{ until_hours }} as until_hours, {{ is_survival }} as is_survival
{%- endfor %}
),

steps as (
    select subject, kind, hours, count(*) as leaving_count, count(case when is_ended then 1 end) as ended_count
    from durations
    group by subject, kind, hours
),

risks as (
    select
        *,
        sum(leaving_count) over (partition by subject, kind order by hours desc rows between unbounded preceding and current row) as risk_count
    from steps
),

survivals as (
    select
        questions.id, questions.kind, questions.is_survival,
        -- the product of the shares that survive each hour; once it is 0, it stays 0
        case
            when max(case when risks.ended_count = risks.risk_count then 1 else 0 end) = 1 then 0.0
            else exp(
                coalesce(
                    sum(case when risks.ended_count < risks.risk_count then ln(1 - risks.ended_count / cast(risks.risk_count as double)) end),
                    0.0
                )
            )
        end as survival
    from questions
    left join risks on questions.subject = risks.subject and questions.kind = risks.kind and risks.hours <= questions.until_hours
    group by questions.id, questions.kind, questions.is_survival
),

plain_questions as (
    select
        questions.id, questions.kind,
        count(
            case
                when questions.is_survival and durations.hours > questions.until_hours then 1
                when not questions.is_survival and durations.is_ended and durations.hours <= questions.until_hours then 1
            end
        ) as numerator,
        count(*) as denominator,
        -- a drive whose rows end before what is waited for begins was not watched
        count(case when durations.hours >= 0 then 1 end) as watched_count
    from questions
    inner join durations on questions.subject = durations.subject and questions.kind = durations.kind
    group by questions.id, questions.kind
)

select
    survivals.id, survivals.kind,
    plain_questions.numerator, plain_questions.denominator,
    case when plain_questions.watched_count > 0 then 100 * case when survivals.is_survival then survivals.survival else 1 - survivals.survival end end as value
from survivals
inner join plain_questions on survivals.id = plain_questions.id
