{#- One verdict of two sets of runs, wherever two are compared: Welch's test of the logarithms where all values are positive, else of the values;
    Holm over a family; two one-sided tests for what is equal. A side is a struct of `n`, `mean`, `variance`, `log_mean`, `log_variance`. -#}

{#- The fields of a side. condition: which results of the group are of it. -#}
{% macro sample_fields(value, condition='true') -%}
'n': count(*) filter (where {{ condition }}),
'mean': {{ of_sample('avg', value, condition) }},
'variance': {{ of_sample('var_samp', value, condition) }},
'log_mean': {{ of_sample('avg', 'ln(nullif(greatest(' ~ value ~ ', 0), 0))', condition) }},
'log_variance': case
    when min({{ value }}) filter (where {{ condition }}) > 0
        then {{ of_sample('var_samp', 'ln(nullif(greatest(' ~ value ~ ', 0), 0))', condition) }}
end
{%- endmacro %}

{#- The rows of a relation with what one side is against the base: `loss_percent` with its interval, `worse_p`, `holm_p`, `answer`, and what the answer
    needs. The relation has `higher_is_better` and `left_out`: why its sides are not compared, null where they are. family: columns that the cells share
    for which Holm corrects; member: what tells one of its cells from another. What one job says twice, bandwidth and IOPS, counts once. needs_runs: where `runs_to_show` is wanted. -#}
{% macro with_answer(relation, base, other, family, member, needs_runs='true') -%}
select
    * exclude (is_log, worse, base_variance, other_variance, spread, worse_error, worse_df, worse_width, one_sided_width, shown_effect),
    greatest(most_loss_percent, most_gain_percent) < {{ var('lab_equal_percent') }} as is_equal,
    case
        when left_out is not null then left_out
        when spread is null then 'no data'
        when holm_p < {{ var('lab_level') }} and worse > 0 then 'slower'
        when holm_p < {{ var('lab_level') }} then 'faster'
        when is_equal then 'equal'
        when most_loss_percent < {{ var('lab_equal_percent') }} then 'not slower'
        else 'cannot say'
    end as answer,
    -- null but where it is asked for: each takes a search
    try_cast(runs_to_detect(
        cast(case when answer = 'cannot say' and {{ needs_runs }} then shown_effect end as double),
        cast({{ var('lab_level') }} as double),
        cast({{ var('lab_power') }} as double)
    ) as bigint) as runs_to_show
from (
    select
        *,
        {{ percent_worse('worse', base) }} as loss_percent,
        {{ percent_worse('worse - worse_width', base) }} as loss_percent_low,
        {{ percent_worse('worse + worse_width', base) }} as loss_percent_high,
        -- how much worse, and how much better, it is at most
        {{ percent_worse('worse + one_sided_width', base) }} as most_loss_percent,
        -({{ percent_worse('worse - one_sided_width', base) }}) as most_gain_percent,
        abs({{ percent_worse(
            'detectable_effect(cast(least(' ~ base ~ '.n, ' ~ other ~ '.n) as double), cast(' ~ var('lab_level') ~ ' as double), cast(' ~ var('lab_power')
            ~ ' as double)) * spread', base
        ) }}) / 100 as detectable_ratio,
        -- `lab_equal_percent`, in standard deviations
        case
            when not is_log then {{ var('lab_equal_percent') }} / 100.0 * abs({{ base }}.mean)
            when higher_is_better then -ln(1 - {{ var('lab_equal_percent') }} / 100.0)
            else ln(1 + {{ var('lab_equal_percent') }} / 100.0)
        end / nullif(spread, 0) as shown_effect
    from ({{ with_holm('(' ~ with_worse(relation, base, other) ~ ')', family, member) }}) as corrected
) as judged
{%- endmacro %}

{#- The rows of a relation with `worse`: by how much a side is worse than the base, on the logarithm (`is_log`) or in `unit`; `spread` of one result;
    `worse_p`; and half the width of its interval, `worse_width`, and of the one-sided ones, `one_sided_width`. Without any spread p is that of the
    exact test, which asks how often chance deals the results so. -#}
{% macro with_worse(relation, base, other) -%}
select
    *,
    case
        when worse_error > 0 then student_two_sided_p(worse / worse_error, worse_df)
        when spread = 0 and worse <> 0 and left_out is null
            then least(1, 2 * exp(lgamma({{ base }}.n + 1) + lgamma({{ other }}.n + 1) - lgamma({{ base }}.n + {{ other }}.n + 1)))
    end as worse_p,
    student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), worse_df) * worse_error as worse_width,
    -- two one-sided tests at a level are an interval at twice that level; without spread it has no width
    case when spread = 0 then 0 else student_quantile(cast(1 - {{ var('lab_level') }} as double), worse_df) * worse_error end as one_sided_width
from (
    select
        *,
        case when left_out is null then sqrt(base_variance / {{ base }}.n + other_variance / {{ other }}.n) end as worse_error,
        case
            when base_variance + other_variance > 0
                then {{ satterthwaite('base_variance / ' ~ base ~ '.n', base ~ '.n', 'other_variance / ' ~ other ~ '.n', other ~ '.n') }}
        end as worse_df,
        sqrt((base_variance + other_variance) / 2) as spread
    from (
        select
            *,
            case when higher_is_better then -1 else 1 end
            * case when is_log then {{ other }}.log_mean - {{ base }}.log_mean else {{ other }}.mean - {{ base }}.mean end as worse,
            case when is_log then {{ base }}.log_variance else {{ base }}.variance end as base_variance,
            case when is_log then {{ other }}.log_variance else {{ other }}.variance end as other_variance
        from (
            -- of values that do not vary the means are exact
            select *, coalesce({{ base }}.log_variance + {{ other }}.log_variance > 0, false) as is_log from {{ relation }}
        ) as scaled
    ) as shifted
) as tested
{%- endmacro %}

{#- The rows of such a relation with `holm_p`: `worse_p` corrected by Holm. -#}
{% macro with_holm(relation, family, member) -%}
{%- set family = family | join(', ') -%}
{%- set member = member ~ ", regexp_replace(test, '[.]iops$', '.bw')" -%}
select
    * exclude (measured_p, place, tests),
    case
        when worse_p is not null
            then least(1, max(measured_p * (tests - place + 1)) over (partition by {{ family }} order by measured_p asc))
    end as holm_p
from (
    select
        *,
        dense_rank() over (partition by {{ family }} order by measured_p asc nulls last, {{ member }}) as place,
        count(distinct case when measured_p is not null then ({{ member }}) end) over (partition by {{ family }}) as tests
    from (
        select
            *,
            first_value(worse_p) over (partition by {{ family }}, {{ member }} order by worse_p is null asc, test asc) as measured_p
        from {{ relation }} as tested
    ) as measured
) as ranked
{%- endmacro %}

{#- `worse`, or an end of its interval, in percent of the base: a rate that fell, or a time that grew. Null of a base of 0. -#}
{% macro percent_worse(worse, base) -%}
100 * case
    when not is_log then ({{ worse }}) / nullif(abs({{ base }}.mean), 0)
    when higher_is_better then 1 - exp(-({{ worse }}))
    else exp({{ worse }}) - 1
end
{%- endmacro %}
