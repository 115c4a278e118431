{#- Rows that meet a condition (count). -#}
{% macro counted(condition) %}cast(count(case when {{ condition }} then 1 end) as bigint){% endmacro %}

{#- Hours of the day that meet a condition, as a set (hour_bit): a drive has one row in an hour, so each bit comes once. -#}
{% macro counted_hours(condition) %}bit_or(case when {{ condition }} then {{ hour_bit('hour_utc') }} else cast(0 as bigint) end){% endmacro %}

{#- Number of hours in a set of them. -#}
{% macro hour_count(hours) %}cast(bit_count({{ hours }}) as bigint){% endmacro %}

{#- The first and the last hour of a set that is not empty, its lowest and its highest bit, as an hour index (hour_index); day: that of its day. -#}
{% macro first_hour_in(hours, day) %}{{ day }} + length(bin({{ hours }} & -({{ hours }}))) - 1{% endmacro %}
{% macro last_hour_in(hours, day) %}{{ day }} + length(bin({{ hours }})) - 1{% endmacro %}

{#- Why an hour with a slowdown is no evidence (int_drive_hours__compared). -#}
{% macro reasons_not_judged() %}{{ return(['too_few_ios', 'unlike_load', 'no_peers']) }}{% endmacro %}

{#- 1.5 -> "150": an edge as a part of a column name. -#}
{% macro edge_name(edge) %}{{ (edge * 100) | round | int }}{% endmacro %}

{#- Lower edge, times 1000, of the bin a value is counted in: 0.005 wide below 1.5, 0.05 below 8, then 1. Every edge of the study's
    figures and tables is one. -#}
{% macro bin_edge(value) -%}
    cast(
        case
            when {{ value }} < {{ var('study_edges')[0] }} then ({{ whole_bins(value, 200) }}) * 5
            when {{ value }} < {{ var('severity_8x') }} then ({{ whole_bins(value, 20) }}) * 50
            when {{ value }} < 1e12 then floor({{ value }}) * 1000
            when {{ value }} is not null then 1e15
        end as bigint
    )
{%- endmacro %}

{#- A value is exactly the lower edge of its bin. -#}
{% macro is_on_edge() %}value = cast(edge_per_mille as double) / 1000{% endmacro %}

{#- How many whole bins of width 1 / `bins_per_unit` a value holds. The product is rounded (1.15 * 200 is less than 230), so the next edge is compared, too. -#}
{% macro whole_bins(value, bins_per_unit) -%}
    floor({{ value }} * {{ bins_per_unit }})
    + case
        when {{ value }} >= (floor({{ value }} * {{ bins_per_unit }}) + 1) / cast({{ bins_per_unit }} as double) then 1
        when {{ value }} < floor({{ value }} * {{ bins_per_unit }}) / cast({{ bins_per_unit }} as double) then -1
        else 0
    end
{%- endmacro %}
