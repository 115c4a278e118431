-- How long ago each drive that is expected reported last, against its RAID group, or against other hosts where its whole host has stopped. Grain: drive_id.
with expected_drives as (
    select
        drives.drive_id,
        segments.role,
        drives.has_inventory, drives.first_hour_utc, drives.last_hour_utc, drives.device, drives.slot,
        coalesce(drives.host, nullif(regexp_extract(drives.drive_id, '^(.+)/', 1), '')) as host,
        standing.is_expected,
        -- a host delivers its own rows, an array those of many
        drives.drive_id like '%/%' or names.drive_id is not null as is_of_host,
        -- a drive that reports is where its rows say, else where inventory does
        case
            when not drives.has_inventory then drives.current_raid_group_id
            when
                drives.last_hour_utc > status_window.last_hour_utc - interval {{ var('stopped_hours') }} hour
                and segments.raid_group_id is not null
                then drives.current_raid_group_id
            else segments.raid_group_id
        end as raid_group_id
    from {{ ref('int_drives') }} as drives
    cross join {{ ref('fct_status_window') }} as status_window
    inner join {{ ref('int_drives__standing') }} as standing on drives.drive_id = standing.drive_id
    left join (select distinct drive_id from {{ ref('int_names') }}) as names on drives.drive_id = names.drive_id
    -- a fleet without a row is where its open periods are
    left join {{ ref('int_drives__segments') }} as segments
        on drives.drive_id = segments.drive_id
        and segments.is_believed
        and coalesce(segments.from_hour_utc <= status_window.last_hour_utc, true)
        and segments.to_hour_utc > coalesce(status_window.last_hour_utc, timestamp '{{ var("end_of_time") }}' - interval 1 hour)
    -- a spare serves no I/O; one that has never reported is as it should be
    where coalesce(segments.role, 'data') <> 'spare' or drives.last_hour_utc is not null
),

reported_groups as (
    select raid_group_id, last_hour_utc from {{ ref('fct_recent_raid_groups') }}
    union all
    select current_raid_group_id as raid_group_id, last_hour_utc from {{ ref('int_drives') }}
),

raid_groups as (
    select raid_group_id, max(last_hour_utc) as last_hour_utc
    from reported_groups
    group by raid_group_id
),

hosts as (
    select
        expected_drives.host, expected_drives.is_of_host,
        max(expected_drives.last_hour_utc) as last_hour_utc,
        -- hosts are late together with what carries their rows; a clock that is ahead makes nobody late
        least(max(max(expected_drives.last_hour_utc)) over (partition by expected_drives.is_of_host), max(publication.published_at)) as others_last_hour_utc
    from expected_drives
    cross join {{ ref('publication') }} as publication
    group by expected_drives.host, expected_drives.is_of_host
),

compared_drives as (
    select
        expected_drives.*,
        raid_groups.last_hour_utc as group_last_hour_utc,
        case
            when expected_drives.is_expected
                then coalesce(
                    -- the whole host has stopped
                    case when hosts.last_hour_utc <= hosts.others_last_hour_utc - interval {{ var('silent_hours') }} hour then hosts.others_last_hour_utc end,
                    raid_groups.last_hour_utc
                )
        end as others_last_hour_utc
    from expected_drives
    left join raid_groups on expected_drives.raid_group_id = raid_groups.raid_group_id
    left join hosts on expected_drives.host = hosts.host and expected_drives.is_of_host = hosts.is_of_host
),

judged_drives as (
    select
        *,
        {{ hour_index('others_last_hour_utc') }} - {{ hour_index('last_hour_utc') }} as hours_behind,
        others_last_hour_utc is not null
        and coalesce(last_hour_utc <= others_last_hour_utc - interval {{ var('silent_hours') }} hour, has_inventory) as is_silent
    from compared_drives
)

select
    drive_id, raid_group_id, role, host, device, slot, has_inventory, first_hour_utc, last_hour_utc, group_last_hour_utc,
    {{ hour_index('group_last_hour_utc') }} - {{ hour_index('last_hour_utc') }} as lag_hours,
    is_silent,
    case when is_silent then hours_behind end as silent_for_hours,
    count(case when is_silent and last_hour_utc is not null then 1 end) over (partition by host, case when host is null then raid_group_id end)
        as place_silent_drives,
    count(case when is_expected and last_hour_utc is not null then 1 end) over (partition by host, case when host is null then raid_group_id end)
        as place_drives
from judged_drives
