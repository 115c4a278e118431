-- Every RAID group of a drive-hour or of inventory, with its width and the time it was observed. Grain: raid_group_id.
select * from {{ ref('int_raid_groups') }}
