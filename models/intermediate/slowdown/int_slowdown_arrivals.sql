{{ config(meta={'made': 'each_build'}) }}
-- Gaps between consecutive slow drive-hours of one drive, in whatever RAID group it was. Grain: drive_id, hour_utc.
with slow_hours as (
    select
        drive_id, hour_utc, raid_group_id,
        lag(hour_utc) over (partition by drive_id order by hour_utc) as previous_hour_utc
    from {{ ref('int_drive_hours__slow') }}
    where is_slow
)

select
    slow_hours.drive_id, slow_hours.hour_utc, slow_hours.raid_group_id,
    drives.kind,
    slow_hours.previous_hour_utc,
    {{ hour_index('slow_hours.hour_utc') }} - {{ hour_index('slow_hours.previous_hour_utc') }} - 1 as gap_hours
from slow_hours
inner join {{ ref('int_drives') }} as drives on slow_hours.drive_id = drives.drive_id
where slow_hours.previous_hour_utc is not null
