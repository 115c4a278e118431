-- Every UTC day, for tools that ask the metrics day by day. Only dbt's own commands know of it; nothing of a publication reads it. Grain: day_utc.
select cast(days.day_utc as date) as day_utc
from unnest(generate_series(timestamp '2015-01-01', timestamp '2049-12-31', interval 1 day)) as days (day_utc)
