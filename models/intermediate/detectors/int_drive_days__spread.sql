{{ config(meta={'made': 'by_day'}) }}
{%- set place = 'cast({} * (drive_hours - 1) as double) / 4' %}
-- How a drive's latencies of a day lie: its quartiles, and what a fifth of its hours reach. Grain: day_utc, drive_id.
with day_spreads as (
    select day_utc, drive_id, count(*) as drive_hours, {{ sorted_values('latency_us') }} as latencies_us
    from {{ ref('int_drive_hours') }}
    where is_in_population and slowdown is not null
    group by day_utc, drive_id
),

-- between two hours the value lies in proportion. Not percentile_cont: each engine rounds in its own way
neighbours as (
    select
        *,
{%- for quartile in (1, 3) %}
        {{ nth('latencies_us', '1 + cast(floor(' ~ place.format(quartile) ~ ') as bigint)') }} as below_{{ quartile }}_us,
        {{ nth('latencies_us', '1 + cast(ceil(' ~ place.format(quartile) ~ ') as bigint)') }} as above_{{ quartile }}_us,
        {{ place.format(quartile) }} - floor({{ place.format(quartile) }}) as part_{{ quartile }}{{ ',' if not loop.last }}
{%- endfor %}
    from day_spreads
)

select
    day_utc, drive_id, drive_hours,
    below_1_us + part_1 * (above_1_us - below_1_us) as q1_latency_us,
    below_3_us + part_3 * (above_3_us - below_3_us) as q3_latency_us,
    -- 6 samples of 30: sysSentry's win_threshold of win_size
    {{ nth('latencies_us', '1 + cast(floor(cast(4 * drive_hours as double) / 5) as bigint)') }} as high_latency_us
from neighbours
