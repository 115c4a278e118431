-- Drives with rows whose kind no source reports: they are compared with each other, or with an array of one known kind. Grain: drive_id.
select drive_id, current_raid_group_id as raid_group_id, first_hour_utc, last_hour_utc
from {{ ref('int_drives') }}
where peer_kind = 'unknown' and last_hour_utc is not null
