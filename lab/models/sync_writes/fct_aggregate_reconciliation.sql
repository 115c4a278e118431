-- Somebody's own means and deviations beside those of the landed runs. Grain: experiment_id, config_id, pass, buffer_bytes.
with given as (
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

found as (
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
    given.* exclude (mean_digit, sd_digit),
    found.mean, found.sd,
    -- half of the last printed digit, and what doubles lose
    case
        when given.given_mean is not null and given.given_sd is not null and found.mean is not null and found.sd is not null
            then abs(given.given_mean - found.mean) <= given.mean_digit / 2 * (1 + 1e-9)
                and abs(given.given_sd - found.sd) <= given.sd_digit / 2 * (1 + 1e-9)
    end as agrees
from given
left join found using (experiment_id, config_id, "pass", buffer_bytes)
