{{ config(meta={'made': 'each_day'}) }}
-- Verdict on each drive on a Monday by the facts known then, with its evidence and its outcome in the 28 days after. Drives that had been slow in
-- the 28 days before. Grain: drive_id, boundary_utc.
select
    drive_id, boundary_utc, kind, raid_group_id, model, verdict, replace_rule, own_tail_hours_28d, cost_tail_hours, slow_hours_28d,
    tail_hours_caused_28d, tail_hours_paired_28d, slow_days_14d, last_slow_hour_utc, together_hours_28d, own_tail_hours_after,
    own_tail_hours_after > cost_tail_hours as has_paid
from {{ ref('int_drive_weeks__judged') }}
where is_monday
