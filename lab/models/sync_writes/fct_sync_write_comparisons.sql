-- Two configurations on one device at one buffer size, by Welch's test. Grain: experiment_id, pass, buffer_bytes, config_a, config_b.
with sides as (
    select
        experiment_id,
        "pass",
        buffer_bytes, config_id,
        count(*) as n,
        {{ of_sample('avg', 'value') }} as mean,
        {{ of_sample('var_samp', 'value') }} as variance
    from {{ ref('step_lab__sync_writes') }}
    group by experiment_id, "pass", buffer_bytes, config_id
),

pairs as (
    select
        a.experiment_id,
        a."pass",
        a.buffer_bytes,
        a.config_id as config_a,
        b.config_id as config_b,
        {{ welch_sides('a', 'b') }},
        {{ pooled_error('a', 'b') }} as pooled_error,
        a.n + b.n - 2 as pooled_df
    from sides as a
    inner join {{ ref('dim_configs') }} as configs_a on a.experiment_id = configs_a.experiment_id and a.config_id = configs_a.config_id
    inner join sides as b
        on a.experiment_id = b.experiment_id and a."pass" = b."pass" and a.buffer_bytes = b.buffer_bytes and a.config_id < b.config_id
    inner join {{ ref('dim_configs') }} as configs_b
        on b.experiment_id = configs_b.experiment_id
        and b.config_id = configs_b.config_id
        and configs_a.device_id = configs_b.device_id
),

-- over the buffers of one pass and pair
tested as (
    {{ with_welch('pairs', ['experiment_id', '"pass"', 'config_a', 'config_b'], 0.05) }}
)

select
    * exclude (standard_error, pooled_error, pooled_df, half_width) replace (case when welch_t is not null then welch_df end as welch_df),
    difference / pooled_error as pooled_t,
    student_two_sided_p(difference / pooled_error, cast(pooled_df as double)) as pooled_p,
    coalesce(welch_p < {{ var('lab_significant_p') }}, false) as is_significant,
    difference - half_width as ci_low,
    difference + half_width as ci_high
from tested
