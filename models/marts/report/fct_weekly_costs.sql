-- Cost of slow drives to the fleet in an ISO week (UTC). Grain: kind, week_utc.
{{ drive_costs_by(['kind', 'week_utc']) }}
