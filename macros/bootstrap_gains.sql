{#- The 95% interval of a sum over RAID groups, by a bootstrap that draws groups: `gain_low` and `gain_high` for each of `keys`; none where every gain is 0.
    relation: its rows have `keys`, `raid_group_id` and a whole number `gain`, of which `unit` make one of the sum. -#}
{% macro bootstrap_gains(relation, keys, gain, unit) -%}
with draws as (
    {{ raid_group_draws('(select distinct raid_group_id from ' ~ relation ~ ' where ' ~ gain ~ ' <> 0)') }}
),

resampled as (
    select
        {%- for key in keys %}
        gains.{{ key }},
        {%- endfor %}
        draws.replicate,
        cast(sum(draws.draw_count * gains.{{ gain }}) as double) / {{ unit }} as gain
    from {{ relation }} as gains
    inner join draws on gains.raid_group_id = draws.raid_group_id
    group by {% for key in keys %}gains.{{ key }}, {% endfor %}draws.replicate
)

select
    {%- for key in keys %}
    {{ key }},
    {%- endfor %}
    percentile_cont(0.025) within group (order by gain) as gain_low,
    percentile_cont(0.975) within group (order by gain) as gain_high
from resampled
group by {{ keys | join(', ') }}
{%- endmacro %}
