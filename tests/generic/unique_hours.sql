{#- A key has at most one row in an hour, and neither is null. A row here is a day in which a key has more rows than hours. The grain of
    what a drive does every hour: the hours of a day are one set (hour_bit), so that keys are grouped by day and not by hour, a third of
    the time of unique_grain at 11 million rows. -#}
{% test unique_hours(model, key) %}
select {{ key }}, cast(hour_utc as date) as day_utc, count(*) as row_count, bit_count(bit_or({{ hour_bit('hour_utc') }})) as hour_count
from {{ model }}
group by {{ key }}, cast(hour_utc as date)
having count(*) > coalesce(bit_count(bit_or({{ hour_bit('hour_utc') }})), 0) or {{ key }} is null
limit 100
{% endtest %}
