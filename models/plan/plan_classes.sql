-- How drives and RAID groups are grouped where their hours are counted by group. Grain: is_raid_group, id.
select
    false as is_raid_group,
    drive_id as id,
    kind || ' | ' || timezone || ' | ' || drive_class || ' | ' || coalesce(cast(deployed_on as string), '') as class
from {{ ref('int_drives') }}
union all
select true as is_raid_group, raid_group_id as id, kind as class
from {{ ref('int_raid_groups__kinds') }}
