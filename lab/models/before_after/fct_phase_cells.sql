{%- set lab_minor_percent = 1 %}{#- a phase that is better by less is so by a minor difference -#}
-- Results of each benchmark before and after. Grain: experiment_id, config_id, benchmark, test, parameter, size_bytes.
with results as (
    select
        results.* exclude (value),
        -- values in several units have no mean
        case when count(distinct results.unit) over cell = 1 then results.value end as value
    from {{ ref('step_lab__measures') }} as results
    inner join {{ ref('dim_experiments') }} as experiments on results.experiment_id = experiments.experiment_id
    where experiments.kind = 'before_after' and results.phase in ('before', 'after') and results.benchmark not in ('trace', 'filefrag')
    window
        cell as (
            partition by results.experiment_id, results.config_id, results.benchmark, results.test, results.parameter, results.size_bytes
        )
),

cells as (
    select
        experiment_id, config_id, benchmark, test, parameter, size_bytes,
        bool_and(higher_is_better) as higher_is_better,
        case when count(distinct unit) = 1 then any_value(unit) end as unit,
        bool_or(results.is_cached) as is_cached,
        {%- for side, phase in (('b', 'before'), ('a', 'after')) %}
        bool_and(is_limited) filter (where phase = '{{ phase }}') as is_limited_{{ phase }},
        list(distinct options) filter (where phase = '{{ phase }}' and options is not null) as options_{{ phase }},
        {
            {{ sample_fields('value', "phase = '" ~ phase ~ "'") }}
        } as {{ side }}{{ ',' if not loop.last }}
        {%- endfor %}
    from results
    group by experiment_id, config_id, benchmark, test, parameter, size_bytes
),

pairs as (
    select
        experiment_id, config_id, benchmark, test, parameter, size_bytes, unit, higher_is_better, is_cached, b, a,
        b.n as n_before,
        b.mean as mean_before,
        sqrt(b.variance) as sd_before,
        a.n as n_after,
        a.mean as mean_after,
        sqrt(a.variance) as sd_after,
        b.mean - a.mean as diff,
        -- of a mean of 0 nothing is a percentage
        nullif(b.mean, 0) as base,
        abs(b.mean - a.mean) / nullif(least(b.mean, a.mean), 0) * 100 as pct_better,
        {{ welch_error('b', 'a') }} as standard_error,
        {{ welch_freedom('b', 'a') }} as welch_df,
        {{ differing_options('options_before', 'options_after') }} as differing_options,
        -- where both phases reach a limit that was set, it is the limit that was measured
        case
            when is_limited_before and is_limited_after
                then array_to_string(list_sort(list_filter(
                    {{ settings_of('options_before') }}, lambda setting: split_part(setting, '=', 1) in ('rate', 'rate_iops')
                )), ', ')
        end as limits
    from cells
),

compared_cells as (
    {{ with_welch('pairs', ['experiment_id'], var('lab_level'), 'diff') }}
),

judged_cells as (
    {{ with_answer(
        "(select * exclude (holm_p), case when differing_options is not null then 'not alike' when limits is not null then 'limited' end as left_out from compared_cells)",
        'b', 'a', ['experiment_id'], 'config_id, benchmark, parameter, size_bytes'
    ) }}
)

select
    judged_cells.* exclude (b, a, base, standard_error, half_width, left_out),
    case
        when (judged_cells.diff > 0) = judged_cells.higher_is_better and judged_cells.diff <> 0 then 'before' when judged_cells.diff <> 0 then 'after' when judged_cells.diff = 0 then 'equal'
    end as better,
    judged_cells.diff / judged_cells.base * 100 as pct_of_before,
    case
        when judged_cells.sd_before is null or judged_cells.sd_after is null then 'no data'
        when abs(judged_cells.diff) <= judged_cells.sd_before + judged_cells.sd_after then 'inconclusive'
        when (judged_cells.diff > 0) = judged_cells.higher_is_better then 'before_better'
        else 'after_better'
    end as verdict,
    judged_cells.pct_better < {{ lab_minor_percent }} as is_minor,
    judged_cells.diff - judged_cells.half_width as ci_low,
    judged_cells.diff + judged_cells.half_width as ci_high,
    judged_cells.n_before = experiments.expected_runs and judged_cells.n_after = experiments.expected_runs as is_complete
from judged_cells
inner join {{ ref('dim_experiments') }} as experiments using (experiment_id)
