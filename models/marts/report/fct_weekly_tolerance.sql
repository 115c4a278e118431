-- What adaptive and reactive reads around slow drives would have saved in an ISO week (UTC). Grain: kind, week_utc.
{{ tolerance_by(['kind', 'week_utc']) }}
