-- RAID groups that count as another kind than when their hours were counted. Grain: raid_group_id.
with raid_groups as (
    select raid_group_id from {{ ref('int_raid_groups__kinds') }}
    union
    select raid_group_id from {{ source('plan', 'counted_raid_groups') }}
)

select raid_groups.raid_group_id
from raid_groups
left join {{ ref('int_raid_groups__kinds') }} as kinds on raid_groups.raid_group_id = kinds.raid_group_id
left join {{ source('plan', 'counted_raid_groups') }} as counted on raid_groups.raid_group_id = counted.raid_group_id
where coalesce(kinds.kind, 'unknown') <> coalesce(counted.kind, 'unknown')
