{{ config(meta={'made': 'each_build'}) }}
-- Kind of a RAID group: by inventory, else by the `--kind` of its deliveries. Grain: raid_group_id.
with declared as (
    select
        current_raid_group_id as raid_group_id,
        declared_kind as kind,
        row_number() over (partition by current_raid_group_id order by count(*) desc, declared_kind asc nulls last) as kind_rank
    from {{ ref('int_drives') }}
    where declared_kind is not null and not has_inventory
    group by current_raid_group_id, declared_kind
)

select
    coalesce(inventory.raid_group_id, declared.raid_group_id) as raid_group_id,
    coalesce(nullif(inventory.kind, 'unknown'), declared.kind, 'unknown') as kind,
    inventory.raid_level
from {{ ref('int_raid_groups__attributes') }} as inventory
full join (select raid_group_id, kind from declared where kind_rank = 1) as declared on inventory.raid_group_id = declared.raid_group_id
