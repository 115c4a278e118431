{{ config(materialized='view') }}
-- Tails of each RAID-hour that has enough peers, longest first. Grain: raid_group_id, hour_utc.
select
    raid_hours.raid_group_id, raid_hours.hour_utc,
    coalesce(raid_groups.kind, 'unknown') as kind,
    raid_hours.data_drive_count, raid_hours.reporting_drive_count, raid_hours.median_latency_us, raid_hours.tail_1, raid_hours.tail_2,
    raid_hours.tail_3, raid_hours.slowest_drive_id, raid_hours.slow_drive_count, raid_hours.is_tail_hour,
    raid_hours.is_mild_tail_hour as is_tail_hour_15,
    raid_hours.raid_io_count, raid_hours.rio_degradation, raid_hours.transition, raid_hours.slow_at
from {{ ref('int_raid_hours') }} as raid_hours
left join {{ ref('int_raid_groups__kinds') }} as raid_groups on raid_hours.raid_group_id = raid_groups.raid_group_id
where raid_hours.is_valid
