{{ config(meta={'made': 'each_day'}) }}
-- What was said of each drive on a Monday by what was known then, on what evidence, and what came of it in the 28 days after. Drives that had been slow in
-- the 28 days before or had caused tail hours. Grain: drive_id, boundary_utc.
select
    drive_id,
    boundary_utc,
    kind,
    raid_group_id,
    model,
    verdict,
    replace_rule,
    expected_tail_hours,
    expected_low,
    expected_high,
    cost_tail_hours,
    slow_hours_28d,
    tail_hours_caused_28d,
    tail_weeks_28d,
    latest_tail_hour_utc,
    together_hours_28d,
    recur_hours,
    tail_hours_caused_after
from {{ ref('int_drive_weeks__judged') }}
