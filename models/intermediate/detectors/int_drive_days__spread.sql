{{ config(meta={'made': 'by_day'}) }}
{%- set own_slow_share = 80100 %}{#- a fifth of the hours are above: 6 samples of 30, sysSentry's win_threshold of win_size. 0.001 for the rounding of 0.8 -#}
-- How a drive's latencies of a day lie: its quartiles, and what a fifth of its hours reach. Values of hours, none between. Grain: day_utc, drive_id.
with spread as (
    select day_utc, drive_id, count(*) as drive_hours, {{ nearest_ranks('latency_us', [25000, 75000, own_slow_share]) }} as latencies_us
    from {{ ref('int_drive_hours__compared') }}
    where is_in_population and slowdown is not null
    group by day_utc, drive_id
)

select
    day_utc, drive_id, drive_hours,
    {{ nth('latencies_us', 1) }} as q1_latency_us,
    {{ nth('latencies_us', 2) }} as q3_latency_us,
    {{ nth('latencies_us', 3) }} as high_latency_us
from spread
