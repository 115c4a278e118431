-- RAID-hours of the batch at work. Those one hour earlier are computed too, to look back at, but not stored.
-- Grain: raid_group_id, hour_utc.
with wanted as (
    select touched.raid_group_id, touched.hour_utc
    from {{ ref('int_raid_hours__touched') }} as touched
    inner join {{ source('plan', 'batch') }} as batch
        on touched.hour_utc >= batch.first_hour_utc and touched.hour_utc <= batch.last_hour_utc
),

looked_at as (
    select raid_group_id, hour_utc, true as is_stored from wanted
    union all
    select raid_group_id, hour_utc - interval 1 hour as hour_utc, false as is_stored from wanted
)

select raid_group_id, hour_utc, max(is_stored) as is_stored
from looked_at
group by raid_group_id, hour_utc
