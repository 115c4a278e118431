-- How long ago each RAID group that is expected reported last, against the fleet. Grain: raid_group_id.
with raid_groups as (
    select
        raid_group_id,
        count(*) as drive_count,
        group_last_hour_utc as last_hour_utc,
        max(case when has_inventory then 1 else 0 end) = 1 as has_inventory
    from {{ ref('fct_drive_freshness') }}
    where raid_group_id is not null
    group by raid_group_id, group_last_hour_utc
)

select
    raid_groups.raid_group_id, raid_groups.drive_count, raid_groups.has_inventory, raid_groups.last_hour_utc,
    {{ hour_index('status_window.last_hour_utc') }} - {{ hour_index('raid_groups.last_hour_utc') }} as lag_hours,
    coalesce(raid_groups.last_hour_utc < status_window.last_hour_utc - interval {{ var('lagging_hours') }} hour, true) as is_lagging,
    -- a group that only its own rows ever named is not expected for ever
    coalesce(
        raid_groups.last_hour_utc < status_window.last_hour_utc - interval {{ var('stopped_hours') }} hour
        and (
            raid_groups.has_inventory
            or raid_groups.last_hour_utc > status_window.last_hour_utc - interval {{ var('status_window_days') }} day
        ),
        false
    ) as is_stopped
from raid_groups
cross join {{ ref('fct_status_window') }} as status_window
