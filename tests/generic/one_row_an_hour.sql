{#- A drive has at most one row in an hour, whatever its RAID group: on each day as many rows as hours with a row. A row here is a day with more
    rows than hours. The hours of a day are one set (hour_bit), so 12 million drive-hours are checked by 500,000 days. -#}
{% test one_row_an_hour(model) %}
select drive_id, day_utc, sum(reported_hours) as row_count, bit_count(bit_or(reported_in)) as hour_count
from {{ model }}
group by drive_id, day_utc
having sum(reported_hours) > bit_count(bit_or(reported_in)) or drive_id is null
{% endtest %}
