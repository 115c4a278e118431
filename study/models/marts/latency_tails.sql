-- Comparison of the tail of a drive's latencies with the mean: drive-hours slow by the one, by the other, by both. Grain: percentile.
{%- for name, percentile in (('p50', 50), ('p99', 99), ('p999', 99.9)) %}
select
    cast({{ percentile }} as double) as percentile,
    count({{ name }}_slowdown) as drive_hours,
    count(case when {{ name }}_slowdown is not null and is_slow then 1 end) as slow_by_mean_hours,
    count(case when is_{{ name }}_slow then 1 end) as slow_by_percentile_hours,
    count(case when is_{{ name }}_slow and is_slow then 1 end) as slow_by_both_hours,
    count(distinct case when is_{{ name }}_slow and not is_slow then drive_id end) as drives_only_the_percentile_sees
from {{ source('marts', 'fct_drive_hour_latency') }}
where slowdown is not null
{{ "union all" if not loop.last }}
{%- endfor %}
