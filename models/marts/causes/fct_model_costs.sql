-- What the slow drives of each model cost in an ISO week (UTC). Grain: model, kind, week_utc.
{{ drive_costs_by(['model', 'kind', 'week_utc']) }}
