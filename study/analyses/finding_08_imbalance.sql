-- Finding 8: is a slow drive slow because it was given more I/O, or larger I/O, than the drives of its group? Twice as much counts as more.
select
    kind,
    count(case when is_slow then rate_imbalance end) as slow_drive_hours_with_rate,
    count(case when is_slow and rate_imbalance >= 2 then 1 end) as slow_and_more_io,
    count(case when is_slow then size_imbalance end) as slow_drive_hours_with_size,
    count(case when is_slow and size_imbalance >= 2 then 1 end) as slow_and_larger_io,
    count(case when is_slow and (rate_imbalance >= 2 or size_imbalance >= 2) then 1 end) as slow_and_either,
    count(case when rate_imbalance >= 2 then 1 end) as more_io,
    100.0 * count(case when is_slow and rate_imbalance >= 2 then 1 end) / nullif(count(case when rate_imbalance >= 2 then 1 end), 0)
        as slow_percent_of_more_io,
    count(case when size_imbalance >= 2 then 1 end) as larger_io,
    100.0 * count(case when is_slow and size_imbalance >= 2 then 1 end) / nullif(count(case when size_imbalance >= 2 then 1 end), 0)
        as slow_percent_of_larger_io
from marts.fct_drive_hours
where slowdown is not null
group by kind
order by kind asc
