-- Two configurations, numbers of writers, devices, phases, values of a factor or buffers over every test that both have, in both orders.
-- Grain: experiment_id, compared, config_id, side_a, side_b, pass, benchmark, test, parameter, size_bytes.
with results as (
    select measures.*, configs.device_id, 'writers=' || configs.writers as writers
    from {{ ref('step_lab__measures') }} as measures
    inner join {{ ref('dim_configs') }} as configs using (experiment_id, config_id)
),

factored_results as (
    select results.*, factors.factor, factors.factor || '=' || factors.value as setting
    from results
    inner join {{ ref('dim_config_factors') }} as factors using (experiment_id, config_id)
),

sides as (
    {%- for compared, side, config, factor, parameter, source in (
        ('config', 'config_id', "''", "''", 'parameter', 'results'),
        ('writers', 'writers', "''", "''", 'parameter', 'results'),
        ('device', 'device_id', "''", "''", 'parameter', 'results'),
        ('phase', 'phase', 'config_id', "''", 'parameter', 'results'),
        ('factor', 'setting', "''", 'factor', 'parameter', 'factored_results'),
        ('buffer', 'cast(buffer_bytes as varchar)', 'config_id', "''", '0', ref('step_lab__buffers')),
    ) %}
    select
        experiment_id,
        '{{ compared }}' as compared,
        {{ config }} as config_id,
        {{ factor }} as factor,
        {{ side }} as side,
        "pass",
        benchmark, test,
        {{ parameter }} as parameter,
        size_bytes,
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
        case when differing_options is not null then 'not alike' when a.is_limited and b.is_limited then 'limited' end as left_out,
        -- of buffers the best is looked for, so every two of a test belong together; else the tests of two sides
        case a.compared when 'buffer' then a.test else a.side || chr(10) || b.side end as family
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

judged_results as (
    {{ with_answer(
        'pairs', 'b', 'a', ['experiment_id', 'compared', 'config_id', 'family'],
        'benchmark, "pass", parameter, size_bytes, least(side_a, side_b), greatest(side_a, side_b)',
        "compared <> 'buffer'"
    ) }}
)

select
    * exclude (a, b, left_out, family),
    a.n as n_a,
    b.n as n_b,
    a.mean as mean_a,
    b.mean as mean_b,
    sqrt(a.variance) as sd_a,
    sqrt(b.variance) as sd_b,
    a.mean - b.mean as difference,
    case when higher_is_better then 1 - loss_percent / 100 else 1 + loss_percent / 100 end as ratio,
    case when higher_is_better then 1 - loss_percent_high / 100 else 1 + loss_percent_low / 100 end as ratio_low,
    case when higher_is_better then 1 - loss_percent_low / 100 else 1 + loss_percent_high / 100 end as ratio_high
from judged_results
