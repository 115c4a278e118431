-- RAID groups whose drives are of several kinds, each compared among themselves in a group of their own. Grain: raid_group_id.
select
    raid_group_id, named_raid_group_id, peer_kind,
    count(*) as drive_count,
    max(case when is_group_guessed then 1 else 0 end) = 1 as is_guessed
from {{ ref('int_drives__periods') }}
where is_latest and is_of_mixed_group and role = 'data'
group by raid_group_id, named_raid_group_id, peer_kind
