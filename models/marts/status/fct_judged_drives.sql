-- Whether each drive is judged, and why not. Drives that were replaced or are gone are not expected. Grain: drive_id.
with recent_drives as (
    select
        drive_id,
        sum(slowdown_hours) as slowdown_hours,
        sum(other_role_hours) as other_role_hours,
        sum(narrow_group_hours) as narrow_group_hours,
        sum(too_few_drives_hours) as too_few_drives_hours,
        sum(no_io_hours) as no_io_hours,
        sum(low_coverage_hours) as low_coverage_hours,
        sum(too_few_ios_hours) as too_few_ios_hours,
        sum(unlike_load_hours) as unlike_load_hours,
        sum(no_peers_hours) as no_peers_hours
    from {{ ref('fct_recent_drives') }}
    group by drive_id
)

select
    drives.drive_id,
    coalesce(drives.host, nullif(regexp_extract(drives.drive_id, '^(.+)/', 1), '')) as host,
    coalesce(drives.device, 'slot ' || drives.slot, drives.drive_id) as name,
    case
        when drives.is_logical then 'behind a RAID controller'
        when drives.last_hour_utc is null or drives.last_hour_utc <= status_window.last_hour_utc - interval {{ var('silent_hours') }} hour
            then case when standing.standing = 'other role' then 'no data drive' else 'silent' end
        -- most of its hours are no evidence
        when 2 * (recent_drives.too_few_ios_hours + recent_drives.unlike_load_hours + recent_drives.no_peers_hours) > recent_drives.slowdown_hours
            then case greatest(recent_drives.too_few_ios_hours, recent_drives.unlike_load_hours, recent_drives.no_peers_hours)
                    when recent_drives.too_few_ios_hours then 'too few I/Os'
                    when recent_drives.unlike_load_hours then 'load unlike its peers'
                    else 'too few peers at work'
                end
        when recent_drives.slowdown_hours > 0 then case when drives.peer_kind = 'unknown' then 'kind unknown' end
        when recent_drives.other_role_hours > 0 then 'no data drive'
        when drives.current_raid_group_id is null then 'no RAID group'
        when recent_drives.narrow_group_hours > 0 then 'RAID group too small'
        when recent_drives.too_few_drives_hours > 0 then 'too few peers with I/O'
        when recent_drives.no_io_hours > 0 then 'no I/O'
        when recent_drives.low_coverage_hours > 0 then 'seen for too short'
        else 'no valid median'
    end as unjudged_reason
from {{ ref('int_drives') }} as drives
cross join {{ ref('fct_status_window') }} as status_window
inner join {{ ref('int_drives__standing') }} as standing on drives.drive_id = standing.drive_id
left join recent_drives on drives.drive_id = recent_drives.drive_id
where standing.standing in ('data', 'other role')
    -- a drive that only an event names is not expected
    and (drives.has_inventory or drives.last_hour_utc is not null)
