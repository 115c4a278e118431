-- Attributes of a RAID group by inventory: its kind, the commonest known kind of its data drives, and its RAID level. Grain: raid_group_id.
-- Each data drive votes once in a group it was ever in, for the kind that it has by its latest period.
with kinds as (
    select
        periods.raid_group_id, drives.kind,
        row_number() over (partition by periods.raid_group_id order by count(distinct periods.drive_id) desc, drives.kind asc) as kind_rank
    from {{ ref('int_drives__periods') }} as periods
    inner join {{ ref('int_drives__periods') }} as drives on periods.drive_id = drives.drive_id and drives.is_latest
    where periods.role = 'data' and drives.kind is not null
    group by periods.raid_group_id, drives.kind
),

levels as (
    select
        raid_group_id,
        max_by(
            raid_level, (coalesce(valid_from, timestamp '{{ var("beginning_of_time") }}'), coalesce(valid_to, timestamp '{{ var("end_of_time") }}'), raid_level)
        ) filter (where raid_level is not null) as raid_level
    from {{ ref('int_drives__periods') }}
    where raid_group_id is not null
    group by raid_group_id
)

select levels.raid_group_id, coalesce(kinds.kind, 'unknown') as kind, levels.raid_level
from levels
left join kinds on levels.raid_group_id = kinds.raid_group_id and kinds.kind_rank = 1
