select week_utc, kind, tail_hours, raid_hours, slow_drive_hours, drive_hours
from marts.fct_weekly_summary
where kind <> 'all'
