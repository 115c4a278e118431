-- Numbers that papers printed beside what experiments give. Grain: experiment_id, id, config_id.
with numbers as (
    select
        *,
        string_split(tests, ' ') as test_list,
        string_split(parameters, ' ') as parameter_list,
        try_cast(value as double) as printed,
        -- half of the last digit
        0.5 / power(10, case when contains(value, '.') then length(split_part(value, '.', 2)) else 0 end) as half
    from {{ ref('before_after_numbers') }}
),

configs as (
    select
        configs.experiment_id,
        configs.config_id
    from {{ ref('dim_configs') }} as configs
    inner join {{ ref('dim_experiments') }} as experiments on configs.experiment_id = experiments.experiment_id
    where experiments.kind = 'before_after'
),

-- by how much the phase that the paper found better is better here (percent of the other)
cells as (
    select
        cells.experiment_id,
        cells.config_id,
        numbers.id,
        cells.verdict,
        cells.is_minor,
        cells.pct_better,
        numbers.better,
        case numbers.better when 'before' then cells.diff / cells.mean_after else -cells.diff / cells.mean_before end * 100 as pct,
        case numbers.better when 'before' then cells.ci_low / cells.mean_after else -cells.ci_high / cells.mean_before end * 100 as low,
        case numbers.better when 'before' then cells.ci_high / cells.mean_after else -cells.ci_low / cells.mean_before end * 100 as high
    from {{ ref('fct_phase_cells') }} as cells
    inner join numbers
        on cells.benchmark = numbers.benchmark
        and list_contains(numbers.test_list, cells.test)
        and list_contains(numbers.parameter_list, cast(cells.parameter as varchar))
    where cells.verdict <> 'no data'
),

measured as (
    select
        cells.experiment_id,
        cells.config_id,
        cells.id,
        count(*) as cells,
        -- of a range its end, else the one cell
        case numbers.operator when '<=' then max(cells.pct) else min(cells.pct) end as pct,
        case numbers.operator
            when '<=' then arg_max(coalesce(cells.low, cells.pct), cells.pct) else arg_min(coalesce(cells.low, cells.pct), cells.pct)
        end as low,
        case numbers.operator
            when '<=' then arg_max(coalesce(cells.high, cells.pct), cells.pct) else arg_min(coalesce(cells.high, cells.pct), cells.pct)
        end as high,
        max(cells.pct_better) as pct_better,
        bool_and(cells.verdict = 'inconclusive' or cells.is_minor) as is_alike
    from cells
    inner join numbers on cells.id = numbers.id
    group by cells.experiment_id, cells.config_id, cells.id, numbers.operator
),

stresses as (
    select
        experiment_id,
        config_id,
        id,
        count(value) as n,
        {{ of_sample('avg', 'value') }} as mean,
        {{ of_sample('stddev_samp', 'value') }} as sd
    from (
        select
            runs.experiment_id,
            runs.config_id,
            numbers.id,
            case numbers.measure
                {%- for measure in ('max_mib_per_s', 'min_mib_per_s', 'mean_mib_per_s', 'sd_mib_per_s', 'mean_seconds', 'aggregate_bytes') %}
                when '{{ measure }}' then runs.{{ measure }}
                {%- endfor %}
                when 'aggregate_gib' then runs.aggregate_bytes / 1073741824.0
            end as value
        from {{ ref('fct_stress_runs') }} as runs
        inner join numbers
            on numbers.judged_as = 'stress'
            and list_contains(numbers.test_list, runs.operation)
            and list_contains(numbers.parameter_list, cast(runs.segments as varchar))
    )
    where value is not null
    group by experiment_id, config_id, id
),

answers as (
    select
        configs.experiment_id,
        configs.config_id,
        numbers.id,
        numbers.metric,
        numbers.operator,
        numbers.value as paper_value,
        numbers.unit,
        numbers.judged_as,
        numbers.printed,
        numbers.half,
        case numbers.judged_as
            when 'difference' then measured.pct when 'no difference' then measured.pct_better when 'stress' then stresses.mean
        end as value,
        case numbers.judged_as
            when 'difference' then measured.low
            when 'stress'
                then stresses.mean - coalesce(
                    student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(stresses.n - 1, 0) as double))
                    * stresses.sd / sqrt(stresses.n), 0
                )
        end as ci_low,
        case numbers.judged_as
            when 'difference' then measured.high
            when 'stress'
                then stresses.mean + coalesce(
                    student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(stresses.n - 1, 0) as double))
                    * stresses.sd / sqrt(stresses.n), 0
                )
        end as ci_high,
        measured.is_alike,
        stresses.n is not null
        or coalesce(measured.cells, 0) >= len(numbers.test_list) * len(numbers.parameter_list) as is_measured
    from configs
    cross join numbers
    left join measured
        on configs.experiment_id = measured.experiment_id and configs.config_id = measured.config_id and numbers.id = measured.id
    left join stresses
        on configs.experiment_id = stresses.experiment_id and configs.config_id = stresses.config_id and numbers.id = stresses.id
)

select
    experiment_id,
    id,
    config_id,
    metric,
    operator,
    paper_value,
    unit,
    value,
    ci_low,
    ci_high,
    case
        when judged_as = 'not comparable' then 'not comparable'
        when not is_measured then 'no data'
        when judged_as = 'no difference' then case when is_alike then 'agrees' else 'differs' end
        -- a direction must be significant
        when judged_as = 'difference' and ci_low <= 0 then 'differs'
        when operator in ('>', '>=') then case when ci_high >= printed - half then 'agrees' else 'differs' end
        when operator = '<=' then case when ci_low <= printed + half then 'agrees' else 'differs' end
        when ci_low <= printed + half and ci_high >= printed - half then 'agrees'
        else 'differs'
    end as verdict,
    case
        when judged_as = 'not comparable' then 'one repetition of IOR, which its summary does not hold'
        when not is_measured and judged_as = 'stress' then 'no IOR run with as many segments has landed'
        when not is_measured then 'the experiment lacks a cell of it, or has fewer than two results in a phase'
    end as reason
from answers
