-- Finding 10: are older drives slower? Drives by the year of their life when first seen, and the slowdown of drive-hours in each year.
with drive_hours as (
    select kind, age_year, slowdown, hour_utc = min(hour_utc) over (partition by drive_id) as is_first_hour
    from marts.fct_drive_hours
    where slowdown is not null
)

select
    kind, age_year,
    count(case when is_first_hour then 1 end) as drive_count,
    sum(count(case when is_first_hour then 1 end)) over (partition by kind) as all_drive_count,
    count(*) as drive_hours,
    percentile_disc(0.95) within group (order by slowdown) as p95_slowdown
from drive_hours
where age_year is not null
group by kind, age_year
order by kind asc, age_year asc
