-- Attributes of a RAID group by inventory: its kind, the commonest known kind of its data drives, and its RAID level. Grain: raid_group_id.
with moved as (
    select distinct raid_group_id, drive_id from {{ ref('int_drives__periods') }} where role = 'data' and not is_only
),

-- each data drive votes once in a group it was ever in
votes as (
    select raid_group_id, kind from {{ ref('int_drives__periods') }} where role = 'data' and is_only
    union all
    select moved.raid_group_id, drives.kind
    from moved
    inner join {{ ref('int_drives__periods') }} as drives on moved.drive_id = drives.drive_id and drives.is_latest
),

kinds as (
    select
        raid_group_id, kind,
        row_number() over (partition by raid_group_id order by count(*) desc, kind asc nulls last) as kind_rank
    from votes
    where kind is not null
    group by raid_group_id, kind
),

-- most drives of a group have the same period
named_levels as (
    select distinct raid_group_id, raid_level, valid_from, valid_to
    from {{ ref('int_drives__periods') }}
    where raid_level is not null
),

levels as (
    select
        raid_group_id, raid_level,
        row_number() over (
            partition by raid_group_id
            order by valid_from desc nulls last, valid_to desc nulls first, raid_level desc nulls last
        ) as level_rank
    from named_levels
),

raid_groups as (
    select distinct raid_group_id from {{ ref('int_drives__periods') }} where raid_group_id is not null
)

select raid_groups.raid_group_id, coalesce(kinds.kind, 'unknown') as kind, levels.raid_level
from raid_groups
left join kinds on raid_groups.raid_group_id = kinds.raid_group_id and kinds.kind_rank = 1
left join levels on raid_groups.raid_group_id = levels.raid_group_id and levels.level_rank = 1
