-- Nothing is lost or doubled on the way: every accepted drive-hour is in fct_drive_hours, or it is that of a parity drive or
-- spare, or of a RAID group too small to have peers. A row here is an hour that does not add up.
-- Raw is read past the staging views, so that a row they drop would show, but for what hosts saw: which of it counts is theirs to say.
with delivered as (
    select hour_utc, raid_group_id
    from {{ source('raw', 'drive_hours') }} as own
    where source is null
        and {{ is_live('drive_hours', 'own') }}
    union all
    -- of what several hosts and sources saw, the one that is believed
    select
        seen.hour_utc,
        {{ placed_group('seen', 'segments') }} as raid_group_id
    from {{ ref('int_drive_hours__identified') }} as seen
    left join {{ ref('int_drives__segments') }} as segments
        on seen.drive_id = segments.drive_id
        and segments.from_hour_utc <= seen.hour_utc
        and segments.to_hour_utc > seen.hour_utc
    where seen.source is not null
),

accepted as (
    select delivered.hour_utc, count(*) as accepted_count
    from delivered
    -- of the hour that a day looks back at nothing is stored
    where cast(delivered.hour_utc as date) in (select day_utc from {{ ref('int_drive_hours') }})
    group by delivered.hour_utc
),

measured as (
    select hour_utc, count(*) as population_count
    from {{ ref('fct_drive_hours') }}
    group by hour_utc
),

left_out as (
    select
        hour_utc,
        count(case when not is_data_drive then 1 end) as parity_or_spare_count,
        count(case when is_data_drive then 1 end) as small_group_count
    from {{ ref('int_drive_hours') }}
    where not is_in_population
    group by hour_utc
)

select
    accepted.hour_utc,
    accepted.accepted_count,
    measured.population_count,
    left_out.parity_or_spare_count,
    left_out.small_group_count
from accepted
full outer join measured on accepted.hour_utc = measured.hour_utc
left join left_out on accepted.hour_utc = left_out.hour_utc
where coalesce(accepted.accepted_count, 0) <> coalesce(measured.population_count, 0)
    + coalesce(left_out.parity_or_spare_count, 0) + coalesce(left_out.small_group_count, 0)
