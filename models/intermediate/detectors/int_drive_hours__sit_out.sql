-- ZFS's counts, followed over a RAID group's rises: what the count of the slowest drive came to, and whether it sat out. Grain: drive_id, hour_utc.
with rises as (
    select
        drive_id, hour_utc, raid_group_id, peer_count, latency_us, fence_us, iqr_latency_us, sit_out_rise,
        row_number() over (partition by raid_group_id order by hour_utc) as rise_number,
        dense_rank() over (partition by raid_group_id order by drive_id) as drive_number
    from {{ ref('int_drive_hours__outlying') }}
    where sit_out_rise is not null
),

histories as (
    select raid_group_id, {{ sit_out_counts() }} as states
    from rises
    group by raid_group_id
),

counted_rises as (
    select
        rises.*,
        {{ nth(nth('histories.states', 'rises.rise_number + 1') ~ '.counts', 'rises.drive_number') }} as outlier_count
    from rises
    inner join histories on rises.raid_group_id = histories.raid_group_id
)

select
    drive_id, hour_utc, raid_group_id, peer_count, latency_us, fence_us, iqr_latency_us, sit_out_rise, outlier_count,
    outlier_count > {{ var('zfs_outlier_limit') }} as is_sat_out
from counted_rises
