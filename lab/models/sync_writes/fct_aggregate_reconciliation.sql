-- Somebody's own means and deviations beside those of the landed runs. Grain: experiment_id, config_id, pass, buffer_bytes.
with given_aggregates as (
    select
        listings.experiment_id, listings.config_id,
        listings."pass",
        aggregates.buffer_bytes, aggregates.given_mean, aggregates.given_sd, aggregates.mean_digit, aggregates.sd_digit
    from {{ source('lab', 'aggregates') }} as aggregates
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    qualify row_number() over (
        partition by listings.experiment_id, listings.config_id, listings."pass", aggregates.buffer_bytes
        order by listings.listed_at desc, aggregates."row" desc
    ) = 1
),

found_aggregates as (
    select
        experiment_id, config_id,
        "pass",
        buffer_bytes,
        {{ of_sample('avg', 'value') }} as mean,
        {{ of_sample('stddev_samp', 'value') }} as sd
    from {{ ref('step_lab__sync_writes') }}
    group by experiment_id, config_id, "pass", buffer_bytes
)

select
    given_aggregates.* exclude (mean_digit, sd_digit),
    found_aggregates.mean, found_aggregates.sd,
    -- half of the last printed digit, and what doubles lose
    case
        when given_aggregates.given_mean is not null and given_aggregates.given_sd is not null and found_aggregates.mean is not null and found_aggregates.sd is not null
            then abs(given_aggregates.given_mean - found_aggregates.mean) <= given_aggregates.mean_digit / 2 * (1 + 1e-9)
                and abs(given_aggregates.given_sd - found_aggregates.sd) <= given_aggregates.sd_digit / 2 * (1 + 1e-9)
    end as agrees
from given_aggregates
left join found_aggregates using (experiment_id, config_id, "pass", buffer_bytes)
