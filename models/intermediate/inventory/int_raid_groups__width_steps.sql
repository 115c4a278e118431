-- Data drives inventory expects in a RAID group, as a step function of the hour. Grain: raid_group_id, from_hour_utc.
with changes as (
    select raid_group_id, from_hour_utc as hour_utc, 1 as step from {{ ref('int_drives__segments') }} where is_believed and role = 'data'
    union all
    select raid_group_id, to_hour_utc as hour_utc, -1 as step from {{ ref('int_drives__segments') }} where is_believed and role = 'data'
)

select
    raid_group_id,
    hour_utc as from_hour_utc,
    lead(hour_utc) over (partition by raid_group_id order by hour_utc) as to_hour_utc,
    cast(sum(sum(step)) over (partition by raid_group_id order by hour_utc) as bigint) as expected_drive_count
from changes
group by raid_group_id, hour_utc
