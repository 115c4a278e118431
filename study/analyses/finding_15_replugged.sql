-- Finding 15: does pulling a drive help? How many come back, how soon, and how many that had been slow are slow again within a day.
select
    kind,
    count(*) as unplug_count,
    count(case when is_replugged then 1 end) as replugged_count,
    100.0 * count(case when is_replugged then 1 end) / count(*) as replugged_percent,
    count(outage_hours) as outage_count,
    count(case when outage_hours <= 2 then 1 end) as back_within_2_hours,
    count(case when outage_hours <= 10 then 1 end) as back_within_10_hours,
    count(case when replugged_at is not null and preceding_severity <> '1.5-2x' then 1 end) as back_after_slowness,
    count(case when recur_hours <= 24 and preceding_severity <> '1.5-2x' then 1 end) as slow_again_within_a_day
from marts.fct_unplug_episodes
where is_in_population
group by kind
order by kind asc
