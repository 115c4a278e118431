-- What each ranking would have saved, had its first drives been replaced at a week boundary. Grain: kind, boundary_utc, top_ratio, rule.
select
    kind,
    boundary_utc,
    top_ratio,
    rule,
    max(drive_count) as drive_count,
    max(pick_count) as pick_count,
    cast(sum(avoided_hundredths) as double) / 100.0 as tail_hours_avoided,
    cast(sum(tail_hours_caused_after) as bigint) as tail_hours_caused
from {{ ref('int_raid_groups__backtest') }}
group by kind, boundary_utc, top_ratio, rule
