-- The weeks over which it is judged whether a drive is chronically slow: those up to its RAID group's last valid hour. Grain: drive_id.
with last_hours as (
    select raid_group_id, max(last_hour_utc) as last_hour_utc
    from {{ ref('int_raid_group_days') }}
    where raid_hours > 0
    group by raid_group_id
),

-- the hours of the day up to the last one, as a set: the first day of the window has the others
windows as (
    select
        raid_group_id,
        last_hour_utc - interval {{ var('chronic_window_days') }} day as after_hour_utc,
        last_hour_utc,
        2 * {{ hour_bit('last_hour_utc') }} - 1 as hours_up_to_last
    from last_hours
),

counted_windows as (
    select
        windows.raid_group_id, windows.after_hour_utc, windows.last_hour_utc,
        cast(sum(
            bit_count(
                case
                    when days.day_utc = cast(windows.after_hour_utc as date) then days.valid_in & ~windows.hours_up_to_last
                    else days.valid_in
                end
            )
        ) as bigint) as raid_hours
    from windows
    inner join {{ ref('int_raid_group_days') }} as days
        on windows.raid_group_id = days.raid_group_id and days.day_utc >= cast(windows.after_hour_utc as date)
    group by windows.raid_group_id, windows.after_hour_utc, windows.last_hour_utc
)

select drives.drive_id, counted_windows.after_hour_utc, counted_windows.last_hour_utc, counted_windows.raid_hours
from {{ ref('int_drives') }} as drives
inner join counted_windows on drives.current_raid_group_id = counted_windows.raid_group_id
where drives.last_hour_utc is not null
