{%- set lab_minor_percent = 1 %}{#- a phase that is better by less is so by a minor difference -#}
-- Results of each benchmark before and after. Grain: experiment_id, config_id, benchmark, test, parameter, size_bytes.
with cells as (
    select
        results.experiment_id, results.config_id, results.benchmark, results.test, results.parameter, results.size_bytes,
        bool_and(results.higher_is_better) as higher_is_better,
        -- values in several units have no mean
        case when count(distinct results.unit) = 1 then any_value(results.unit) end as unit,
        {%- for side, phase in (('b', 'before'), ('a', 'after')) %}
        {
            'n': count(*) filter (where results.phase = '{{ phase }}'),
            {%- for name, statistic in (('mean', 'avg'), ('variance', 'var_samp')) %}
            '{{ name }}': case
                when count(distinct results.unit) = 1 then {{ of_sample(statistic, 'results.value', "results.phase = '" ~ phase ~ "'") }}
            end{{ ',' if not loop.last }}
            {%- endfor %}
        } as {{ side }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ ref('fct_bench_results') }} as results
    inner join {{ ref('dim_experiments') }} as experiments on results.experiment_id = experiments.experiment_id
    where experiments.kind = 'before_after' and results.phase in ('before', 'after')
    group by results.experiment_id, results.config_id, results.benchmark, results.test, results.parameter, results.size_bytes
),

pairs as (
    select
        experiment_id, config_id, benchmark, test, parameter, size_bytes, unit, higher_is_better,
        b.n as n_before,
        b.mean as mean_before,
        sqrt(b.variance) as sd_before,
        a.n as n_after,
        a.mean as mean_after,
        sqrt(a.variance) as sd_after,
        b.mean - a.mean as diff,
        -- how much worse it is after: a rate that falls and a time that grows
        case when higher_is_better then b.mean - a.mean else a.mean - b.mean end as loss,
        -- of a mean of 0 nothing is a percentage
        nullif(b.mean, 0) as base,
        abs(b.mean - a.mean) / nullif(least(b.mean, a.mean), 0) * 100 as pct_better,
        {{ welch_error('b', 'a') }} as standard_error,
        {{ welch_freedom('b', 'a') }} as welch_df,
        -- the spread of one result, over both phases
        sqrt((b.variance + a.variance) / 2) as spread
    from cells
),

tested as (
    select
        *,
        -- two one-sided tests at a level are an interval at twice that level; without spread it has no width
        case
            when spread = 0 then 0
            else student_quantile(cast(1 - {{ var('lab_level') }} as double), welch_df) * standard_error
        end as one_sided_width,
        runs_to_detect(
            cast({{ var('lab_equal_percent') }} / 100.0 * abs(mean_before) / nullif(spread, 0) as double),
            cast({{ var('lab_level') }} as double),
            cast({{ var('lab_power') }} as double)
        ) as runs_to_show,
        detectable_effect(
            cast(least(n_before, n_after) as double), cast({{ var('lab_level') }} as double), cast({{ var('lab_power') }} as double)
        ) * spread as detectable
    from (
        {{ with_welch('pairs', ['experiment_id', 'config_id', 'benchmark'], var('lab_level'), 'diff') }}
    ) as compared
)

select
    tested.* exclude (loss, base, standard_error, spread, half_width, one_sided_width, detectable)
    replace (try_cast(tested.runs_to_show as bigint) as runs_to_show),
    case when tested.loss > 0 then 'before' when tested.loss < 0 then 'after' when tested.loss = 0 then 'equal' end as better,
    tested.diff / tested.base * 100 as pct_of_before,
    case
        when tested.spread is null then 'no data'
        when abs(tested.diff) <= tested.sd_before + tested.sd_after then 'inconclusive'
        when tested.loss > 0 then 'before_better'
        else 'after_better'
    end as verdict,
    tested.pct_better < {{ lab_minor_percent }} as is_minor,
    tested.diff - tested.half_width as ci_low,
    tested.diff + tested.half_width as ci_high,
    tested.loss / tested.base * 100 as loss_percent,
    (tested.loss - tested.half_width) / tested.base * 100 as loss_percent_low,
    (tested.loss + tested.half_width) / tested.base * 100 as loss_percent_high,
    tested.detectable / tested.base as detectable_ratio,
    -- the two one-sided tests: how much worse, and how much better, it is after at most
    (tested.loss + tested.one_sided_width) / tested.base * 100 as most_loss_percent,
    (tested.one_sided_width - tested.loss) / tested.base * 100 as most_gain_percent,
    greatest(most_loss_percent, most_gain_percent) < {{ var('lab_equal_percent') }} as is_equal,
    tested.n_before = experiments.expected_runs and tested.n_after = experiments.expected_runs as is_complete
from tested
inner join {{ ref('dim_experiments') }} as experiments using (experiment_id)
