-- Two configurations, devices, phases or values of a factor over every test that both have, in both orders.
-- Grain: experiment_id, compared, config_id, side_a, side_b, pass, benchmark, test, parameter, size_bytes.
with results as (
    select results.*, configs.device_id
    from {{ ref('fct_bench_results') }} as results
    inner join {{ ref('dim_configs') }} as configs on results.experiment_id = configs.experiment_id and results.config_id = configs.config_id
),

factored as (
    select results.*, factors.factor, factors.factor || '=' || factors.value as setting
    from results
    inner join {{ ref('dim_config_factors') }} as factors using (experiment_id, config_id)
),

sides as (
    {%- for compared, side, config, factor, source in (
        ('config', 'config_id', "''", "''", 'results'),
        ('device', 'device_id', "''", "''", 'results'),
        ('phase', 'phase', 'config_id', "''", 'results'),
        ('factor', 'setting', "''", 'factor', 'factored'),
    ) %}
    select
        experiment_id,
        '{{ compared }}' as compared,
        {{ config }} as config_id,
        {{ factor }} as factor,
        {{ side }} as side,
        "pass",
        benchmark, test, parameter, size_bytes,
        min(unit) as unit,
        bool_and(higher_is_better) as higher_is_better,
        bool_and(is_limited) as is_limited,
        list(distinct options) filter (where options is not null) as options,
        {
            {{ sample_fields('value') }}
        } as sample
    from {{ source }}
    where {{ side }} <> ''
    group by all
    having count(distinct unit) = 1
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

-- options that may differ, for the manifest says that they do
factors as (
    select experiment_id, list(distinct factor) as asked from {{ ref('dim_config_factors') }} group by experiment_id
),

pairs as (
    select
        a.experiment_id, a.compared, a.config_id,
        a.side as side_a,
        b.side as side_b,
        a."pass",
        a.benchmark, a.test, a.parameter, a.size_bytes, a.unit, a.higher_is_better,
        a.sample as a,
        b.sample as b,
        {{ differing_options(
            'a.options', 'b.options',
            "case a.compared when 'factor' then [a.factor] when 'phase' then [] else coalesce(factors.asked, []) end"
        ) }} as differing_options,
        coalesce(a.is_limited and b.is_limited, false) as is_limited
    from sides as a
    inner join sides as b
        on a.experiment_id = b.experiment_id
        and a.compared = b.compared
        and a.config_id = b.config_id
        and a.factor = b.factor
        and a.side <> b.side
        and a."pass" = b."pass"
        and a.benchmark = b.benchmark
        and a.test = b.test
        and a.parameter = b.parameter
        and a.size_bytes = b.size_bytes
        and a.unit = b.unit
    left join factors on a.experiment_id = factors.experiment_id
),

measured as (
    select
        *,
        {{ welch_sides('a', 'b') }}
    from pairs
),

compared as (
    {{ with_welch('measured', ['experiment_id', 'compared', 'config_id', 'side_a', 'side_b'], var('lab_level')) }}
),

tested as (
    {{ with_worse('(select * exclude (holm_p) from compared)', 'b', 'a', '(is_limited or differing_options is not null)') }}
),

corrected as (
    {{ with_holm('tested', ['experiment_id', 'compared', 'config_id', 'side_a', 'side_b']) }}
)

select
    * exclude (
        a, b, standard_error, half_width, is_log, worse, base_variance, other_variance, spread, worse_error, worse_df, worse_p, worse_width, one_sided_width
    ),
    difference / nullif(abs(mean_b), 0) as difference_ratio,
    difference - half_width as ci_low,
    difference + half_width as ci_high,
    worse_p,
    {{ percent_worse('worse', 'b') }} as worse_percent,
    {{ percent_worse('worse - worse_width', 'b') }} as worse_percent_low,
    {{ percent_worse('worse + worse_width', 'b') }} as worse_percent_high,
    case
        when differing_options is not null then 'not alike'
        when is_limited then 'limited'
        when n_a < 2 or n_b < 2 then 'no data'
        when holm_p < {{ var('lab_level') }} and worse < 0 then 'a better'
        when holm_p < {{ var('lab_level') }} then 'b better'
        when greatest(
            {{ percent_worse('worse + one_sided_width', 'b') }}, -({{ percent_worse('worse - one_sided_width', 'b') }})
        ) < {{ var('lab_equal_percent') }} then 'equal'
        else 'inconclusive'
    end as verdict
from corrected
