-- Perseus' risk of each drive, day by day and over the last `perseus_days`. Days without samples have no row. Grain: drive_id, day_utc.
with days as (
    select
        drive_id, day_utc,
        cast(sum(window_count) as bigint) as window_count,
        cast(sum(event_count) as bigint) as event_count,
        sum(event_ratio_sum) / nullif(sum(event_count), 0) as event_ratio,
        max(worst_ratio) as worst_ratio,
        max_by(worst_window_utc, worst_ratio) as worst_window_utc
    from {{ ref('int_sampled_days') }}
    group by drive_id, day_utc
),

rated_days as (
    select
        *,
        {{ perseus_risk('event_count', 'event_ratio') }} as risk
    from days
)

select
    drive_id, day_utc, window_count, event_count, event_ratio, worst_ratio, worst_window_utc,
    cast(risk as bigint) as risk,
    cast(
        sum(risk) over (
            partition by drive_id order by day_utc range between interval {{ var('perseus_days') - 1 }} day preceding and current row
        ) as bigint
    ) as window_risk
from rated_days
