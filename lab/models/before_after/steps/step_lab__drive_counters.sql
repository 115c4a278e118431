-- Counters of drives at the first and the last look of a run. Grain: experiment_id, config_id, phase, run_number, device_id, counter.
with looks as (
    select
        listings.experiment_id, listings.config_id, listings.phase, listings.run_number,
        coalesce(listings.device_id, configs.device_id) as device_id,
        counters.counter, counters.value,
        listings.offset_s, listings.listed_at,
        counters."row"
    from {{ source('lab', 'drive_counters') }} as counters
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    inner join {{ ref('dim_configs') }} as configs using (experiment_id, config_id)
)

select
    experiment_id, config_id, phase, run_number, device_id, counter,
    count(distinct listed_at) as looks,
    min(value) filter (where place = 1) as first_value,
    min(value) filter (where place_from_last = 1) as last_value
from (
    select
        *,
        row_number() over (
            partition by experiment_id, config_id, phase, run_number, device_id, counter
            order by offset_s asc, listed_at asc, "row" asc
        ) as place,
        row_number() over (
            partition by experiment_id, config_id, phase, run_number, device_id, counter
            order by offset_s desc, listed_at desc, "row" desc
        ) as place_from_last
    from looks
) as placed
group by experiment_id, config_id, phase, run_number, device_id, counter
