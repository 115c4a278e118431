-- Savings that adaptive and reactive reads around slow drives would have made in an ISO week (UTC). Grain: kind, week_utc.
{{ tolerance_by(['kind', 'week_utc'], ref('fct_raid_hours'), ref('int_raid_groups__draws'), ref('share_limits')) }}
