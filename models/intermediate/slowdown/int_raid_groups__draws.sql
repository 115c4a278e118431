{{ config(materialized='view') }}
-- How often each RAID group is drawn in each replicate of a bootstrap over RAID groups. Grain: raid_group_id, replicate.
{{ raid_group_draws(ref('int_raid_groups')) }}
