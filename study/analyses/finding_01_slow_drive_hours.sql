-- Finding 1: how often is a drive at least twice as slow as the drives of its RAID group, and how slow are its worst hours?
select
    kind,
    count(slowdown) as drive_hours,
    count(case when is_slow then 1 end) as slow_drive_hours,
    100.0 * count(case when is_slow then 1 end) / nullif(count(slowdown), 0) as slow_percent,
    count(case when is_slow_15 then 1 end) as drive_hours_from_1_5x,
    100.0 * count(case when is_slow_15 then 1 end) / nullif(count(slowdown), 0) as percent_from_1_5x,
    percentile_disc(0.9999) within group (order by slowdown) as four_nines_slowdown,
    percentile_disc(0.99999) within group (order by slowdown) as five_nines_slowdown,
    count(case when slowdown >= 100 and slowdown < 1000 then 1 end) as three_digit_drive_hours,
    count(case when slowdown >= 1000 and slowdown < 10000 then 1 end) as four_digit_drive_hours
from marts.fct_drive_hours
group by kind
order by kind asc
