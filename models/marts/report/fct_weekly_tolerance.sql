-- Savings that adaptive and reactive reads around slow drives would have made in an ISO week (UTC). Grain: kind, week_utc.
{{ tolerance_by(['kind', 'week_utc']) }}
