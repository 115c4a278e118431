select host, slot, drive_id, action, why, since_utc
from marts.drive_actions
where needs_person
order by action_rank
