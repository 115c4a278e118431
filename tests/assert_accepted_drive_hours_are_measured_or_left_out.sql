-- Nothing is lost or doubled on the way: every accepted drive-hour of a day is compared with its peers, or it is that of a parity drive or
-- spare, or of a RAID group too small to have peers; int_drive_days counts them all. What another source, or another name of the drive, said of the
-- same hour gave way, and further paths were added up: int_drive_days__merged counts those. A row here is a day that does not add up.
-- A day that is in one of both only does not add up either: none may vanish. Raw is read past the staging views, so that a row they drop would show.
with accepted as (
    select cast(hour_utc as date) as day_utc, count(*) as accepted_count
    from {{ source('raw', 'drive_hours') }} as delivered
    where {{ is_live('drive_hours', 'delivered') }}
    group by cast(hour_utc as date)
),

kept as (
    select day_utc, cast(sum(reported_hours) as bigint) as row_count
    from {{ ref('int_drive_days') }}
    group by day_utc
    union all
    select day_utc, cast(sum(path_spans + part_spans + other_spans + changed_spans) as bigint) as row_count
    from {{ ref('int_drive_days__merged') }}
    group by day_utc
),

measured as (
    select day_utc, cast(sum(row_count) as bigint) as measured_count
    from kept
    group by day_utc
)

select
    coalesce(accepted.day_utc, measured.day_utc) as day_utc,
    accepted.accepted_count,
    measured.measured_count
from accepted
full join measured on accepted.day_utc = measured.day_utc
where coalesce(accepted.accepted_count, 0) <> coalesce(measured.measured_count, 0)
    -- of pruned days raw has nothing any more, but for the last one's rows
    and (
        (select max(pruned_before_utc) from {{ ref('publication') }}) is null
        or coalesce(accepted.day_utc, measured.day_utc) >= (select max(cast(pruned_before_utc as date)) from {{ ref('publication') }})
    )
    -- raw shows the hour before the days that are computed, too; where none are named, all are shown
    and (
        (select count(*) from {{ source('plan', 'shown_days') }}) = 0
        or coalesce(accepted.day_utc, measured.day_utc) in (select day_utc from {{ source('plan', 'shown_days') }})
    )
