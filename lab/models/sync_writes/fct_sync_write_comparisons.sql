-- Two configurations on one device at one buffer size: the paper's tests, and the answer of the lab. Grain: experiment_id, pass, buffer_bytes, config_a, config_b.
with sides as (
    select
        experiment_id,
        "pass",
        buffer_bytes, config_id, size_bytes,
        count(*) as n,
        {{ of_sample('avg', 'value') }} as mean,
        {{ of_sample('var_samp', 'value') }} as variance
    from {{ ref('step_lab__sync_writes') }}
    group by experiment_id, "pass", buffer_bytes, config_id, size_bytes
),

pairs as (
    select
        a.experiment_id,
        a."pass",
        a.buffer_bytes,
        a.config_id as config_a,
        b.config_id as config_b,
        {{ welch_sides('a', 'b') }},
        a.size_bytes as size_a,
        b.size_bytes as size_b,
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
tested_pairs as (
    {{ with_welch('pairs', ['experiment_id', '"pass"', 'config_a', 'config_b'], 0.05) }}
)

select
    tested_pairs.* exclude (standard_error, pooled_error, pooled_df, half_width, size_a, size_b)
    replace (case when tested_pairs.welch_t is not null then tested_pairs.welch_df end as welch_df),
    tested_pairs.difference / tested_pairs.pooled_error as pooled_t,
    student_two_sided_p(tested_pairs.difference / tested_pairs.pooled_error, cast(tested_pairs.pooled_df as double)) as pooled_p,
    coalesce(tested_pairs.welch_p < {{ var('lab_significant_p') }}, false) as is_significant,
    tested_pairs.difference - tested_pairs.half_width as ci_low,
    tested_pairs.difference + tested_pairs.half_width as ci_high,
    answers.loss_percent, answers.loss_percent_low, answers.loss_percent_high, answers.most_loss_percent,
    answers.most_gain_percent, answers.runs_to_show,
    answers.holm_p as answer_p,
    answers.differing_options,
    -- files of other sizes are other tests
    coalesce(answers.answer, 'not alike') as answer
from tested_pairs
left join {{ ref('fct_bench_comparisons') }} as answers
    on tested_pairs.experiment_id = answers.experiment_id
    and answers.compared = 'config'
    and tested_pairs.config_a = answers.side_a
    and tested_pairs.config_b = answers.side_b
    and answers.benchmark = 'iozone_' || tested_pairs."pass"
    and answers.test = 'write'
    and tested_pairs.buffer_bytes = answers.parameter
    and tested_pairs.size_a = answers.size_bytes
    and tested_pairs.size_b = answers.size_bytes
    and tested_pairs.n_a = answers.n_a
    and tested_pairs.n_b = answers.n_b
