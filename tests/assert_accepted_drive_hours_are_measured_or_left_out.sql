-- Nothing is lost or doubled on the way: every accepted drive-hour of a day is compared with its peers, or it is that of a parity drive or
-- spare, or of a RAID group too small to have peers; int_drive_days counts them all. A row here is a day that does not add up.
-- Raw is read past the staging views, so that a row they drop would show, but for what hosts saw: which of it counts is theirs to say.
with delivered as (
    select hour_utc
    from {{ source('raw', 'drive_hours') }} as own
    where source is null
        and {{ is_live('drive_hours', 'own') }}
    union all
    -- of what several hosts and sources saw, the one that is believed
    select hour_utc
    from {{ ref('int_drive_hours__identified') }}
    where source is not null
),

accepted as (
    select cast(hour_utc as date) as day_utc, count(*) as accepted_count
    from delivered
    group by cast(hour_utc as date)
),

measured as (
    select day_utc, cast(sum(reported_hours) as bigint) as measured_count
    from {{ ref('int_drive_days') }}
    group by day_utc
)

select
    measured.day_utc,
    accepted.accepted_count,
    measured.measured_count
from measured
left join accepted on measured.day_utc = accepted.day_utc
-- of pruned days raw has nothing any more, but for the last one's rows
where measured.day_utc >= coalesce((select max(cast(pruned_before_utc as date)) from {{ ref('publication') }}), measured.day_utc)
    and measured.measured_count <> coalesce(accepted.accepted_count, 0)
