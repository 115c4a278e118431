-- Cost of slow drives to each RAID group in an ISO week (UTC). Grain: raid_group_id, week_utc.
{{ drive_costs_by(['raid_group_id', 'week_utc']) }}
