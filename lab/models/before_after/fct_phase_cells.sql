-- What each benchmark gave before and after. Grain: experiment_id, config_id, benchmark, test, parameter, size_bytes.
with results as (
    select results.*
    from {{ ref('fct_bench_results') }} as results
    inner join {{ ref('dim_experiments') }} as experiments on results.experiment_id = experiments.experiment_id
    where experiments.kind = 'before_after' and results.phase in ('before', 'after')
),

cells as (
    select
        experiment_id,
        config_id,
        benchmark,
        test,
        parameter,
        size_bytes,
        -- values in several units have no mean
        case when count(distinct unit) = 1 then min(unit) end as unit,
        bool_and(higher_is_better) as higher_is_better
    from results
    group by experiment_id, config_id, benchmark, test, parameter, size_bytes
),

phases as (
    select
        experiment_id,
        config_id,
        benchmark,
        test,
        parameter,
        size_bytes,
        phase,
        count(*) as n,
        {{ of_sample('avg', 'value') }} as mean,
        {{ of_sample('var_samp', 'value') }} as variance
    from results
    group by experiment_id, config_id, benchmark, test, parameter, size_bytes, phase
),

sides as (
    select
        cells.*,
        phases.phase,
        coalesce(measured.n, 0) as n,
        case when cells.unit is not null then measured.mean end as mean,
        case when cells.unit is not null then measured.variance end as variance
    from cells
    cross join (select unnest(['before', 'after']) as phase) as phases
    left join phases as measured
        on cells.experiment_id = measured.experiment_id
        and cells.config_id = measured.config_id
        and cells.benchmark = measured.benchmark
        and cells.test = measured.test
        and cells.parameter = measured.parameter
        and cells.size_bytes = measured.size_bytes
        and phases.phase = measured.phase
),

pairs as (
    select
        b.experiment_id,
        b.config_id,
        b.benchmark,
        b.test,
        b.parameter,
        b.size_bytes,
        b.unit,
        b.higher_is_better,
        b.n as n_before,
        b.mean as mean_before,
        sqrt(b.variance) as sd_before,
        a.n as n_after,
        a.mean as mean_after,
        sqrt(a.variance) as sd_after,
        b.mean - a.mean as diff,
        abs(b.mean - a.mean) / nullif(least(b.mean, a.mean), 0) * 100 as pct_better,
        {{ welch_error('b', 'a') }} as standard_error,
        {{ welch_freedom('b', 'a') }} as welch_df,
        -- the spread of one result, over both phases
        sqrt((b.variance + a.variance) / 2) as spread
    from sides as b
    inner join sides as a
        on b.experiment_id = a.experiment_id
        and b.config_id = a.config_id
        and b.benchmark = a.benchmark
        and b.test = a.test
        and b.parameter = a.parameter
        and b.size_bytes = a.size_bytes
    where b.phase = 'before' and a.phase = 'after'
),

tested as (
    select
        *,
        -- two one-sided tests at a level are an interval at twice that level; without spread it has no width
        case
            when least(n_before, n_after) >= 2
                then coalesce(student_quantile(cast(1 - {{ var('lab_level') }} as double), welch_df) * standard_error, 0)
        end as one_sided_width,
        runs_to_detect(
            cast({{ var('lab_equal_percent') }} / 100.0 * abs(mean_before) / nullif(spread, 0) as double),
            cast({{ var('lab_level') }} as double),
            cast({{ var('lab_power') }} as double)
        ) as runs_to_show,
        detectable_effect(
            cast(case when least(n_before, n_after) >= 2 then least(n_before, n_after) end as double),
            cast({{ var('lab_level') }} as double),
            cast({{ var('lab_power') }} as double)
        ) * spread as detectable
    from (
        {{ with_welch('pairs', ['experiment_id', 'config_id', 'benchmark'], var('lab_level'), 'diff') }}
    ) as compared
)

select
    tested.experiment_id,
    tested.config_id,
    tested.benchmark,
    tested.test,
    tested.parameter,
    tested.size_bytes,
    tested.unit,
    tested.higher_is_better,
    tested.n_before,
    tested.mean_before,
    tested.sd_before,
    tested.n_after,
    tested.mean_after,
    tested.sd_after,
    tested.diff,
    case
        when tested.diff is null then null
        when tested.diff = 0 then 'equal'
        when (tested.diff > 0) = tested.higher_is_better then 'before'
        else 'after'
    end as better,
    tested.pct_better,
    tested.diff / nullif(tested.mean_before, 0) * 100 as pct_of_before,
    case
        when tested.n_before < 2 or tested.n_after < 2 or tested.diff is null then 'no data'
        when abs(tested.diff) <= tested.sd_before + tested.sd_after then 'inconclusive'
        when (tested.diff > 0) = tested.higher_is_better then 'before_better'
        else 'after_better'
    end as verdict,
    tested.pct_better < {{ var('lab_minor_percent') }} as is_minor,
    tested.welch_t,
    tested.welch_df,
    tested.welch_p,
    tested.holm_p,
    tested.diff - tested.half_width as ci_low,
    tested.diff + tested.half_width as ci_high,
    -- how much worse it is after, in percent of the mean before: a rate that falls and a time that grows
    case when tested.higher_is_better then 1 else -1 end * tested.diff / nullif(tested.mean_before, 0) * 100 as loss_percent,
    (case when tested.higher_is_better then 1 else -1 end * tested.diff - tested.half_width)
    / nullif(tested.mean_before, 0) * 100 as loss_percent_low,
    (case when tested.higher_is_better then 1 else -1 end * tested.diff + tested.half_width)
    / nullif(tested.mean_before, 0) * 100 as loss_percent_high,
    tested.detectable / nullif(tested.mean_before, 0) as detectable_ratio,
    -- the two one-sided tests: how much worse, and how much better, it is after at most
    (case when tested.higher_is_better then 1 else -1 end * tested.diff + tested.one_sided_width)
    / nullif(tested.mean_before, 0) * 100 as most_loss_percent,
    (tested.one_sided_width - case when tested.higher_is_better then 1 else -1 end * tested.diff)
    / nullif(tested.mean_before, 0) * 100 as most_gain_percent,
    greatest(
        (tested.one_sided_width + tested.diff) / nullif(tested.mean_before, 0),
        (tested.one_sided_width - tested.diff) / nullif(tested.mean_before, 0)
    ) * 100 < {{ var('lab_equal_percent') }} as is_equal,
    try_cast(tested.runs_to_show as bigint) as runs_to_show,
    tested.n_before = experiments.expected_runs and tested.n_after = experiments.expected_runs as is_complete
from tested
inner join {{ ref('dim_experiments') }} as experiments on tested.experiment_id = experiments.experiment_id
