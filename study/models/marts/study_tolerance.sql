-- Savings that adaptive and reactive reads around slow drives would have made in all hours. Grain: kind.
{{ tolerance_by(['kind'], source('marts', 'fct_raid_hours'), source('intermediate', 'int_raid_groups__draws'), source('seeds', 'share_limits')) }}
