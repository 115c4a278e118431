-- How long ago each drive that is expected reported last, against its RAID group. Grain: drive_id.
with expected as (
    select
        drives.drive_id,
        segments.role,
        drives.has_inventory, drives.first_hour_utc, drives.last_hour_utc,
        -- a drive that reports is where its rows say, else where inventory does
        case
            when not drives.has_inventory then drives.current_raid_group_id
            when
                drives.last_hour_utc > status_window.last_hour_utc - interval {{ var('silent_hours') }} hour
                and segments.raid_group_id is not null
                then drives.current_raid_group_id
            else segments.raid_group_id
        end as raid_group_id
    from {{ ref('int_drives') }} as drives
    cross join {{ ref('fct_status_window') }} as status_window
    -- a fleet without a row is where its open periods are
    left join {{ ref('int_drives__segments') }} as segments
        on drives.drive_id = segments.drive_id
        and segments.is_believed
        and coalesce(segments.from_hour_utc <= status_window.last_hour_utc, true)
        and segments.to_hour_utc > coalesce(status_window.last_hour_utc, timestamp '{{ var("end_of_time") }}' - interval 1 hour)
    -- a spare serves no I/O; one that has never reported is as it should be
    where coalesce(segments.role, 'data') <> 'spare' or drives.last_hour_utc is not null
),

reported as (
    select raid_group_id, last_hour_utc from {{ ref('fct_recent_raid_groups') }}
    union all
    select current_raid_group_id as raid_group_id, last_hour_utc from {{ ref('int_drives') }}
),

raid_groups as (
    select raid_group_id, max(last_hour_utc) as last_hour_utc
    from reported
    group by raid_group_id
)

select
    expected.drive_id, expected.raid_group_id, expected.role, expected.has_inventory, expected.first_hour_utc, expected.last_hour_utc,
    raid_groups.last_hour_utc as group_last_hour_utc,
    {{ hour_index('raid_groups.last_hour_utc') }} - {{ hour_index('expected.last_hour_utc') }} as lag_hours,
    expected.has_inventory
    and raid_groups.last_hour_utc is not null
    and coalesce(expected.last_hour_utc <= raid_groups.last_hour_utc - interval {{ var('silent_hours') }} hour, true) as is_silent
from expected
left join raid_groups on expected.raid_group_id = raid_groups.raid_group_id
