{#- Counts by day that add up: what the batch computed counts, what it computed again no longer counts as it was. Each row carries
    `sign`, 1 or -1; rows of the day before this batch carry their counts. -#}
{% macro counted(condition) %}cast(sum(case when {{ condition }} then sign else 0 end) as bigint){% endmacro %}

{#- Hours of the day that count, as a set (hour_bit): a drive has one row in an hour, so what comes adds a bit and what goes takes its own away. -#}
{% macro counted_hours(condition) %}cast(sum(case when {{ condition }} then sign * {{ hour_bit('hour_utc') }} else 0 end) as bigint){% endmacro %}

{#- Rows of a stored model that count: those the batch computed, and with the opposite sign those it computed again as they were. -#}
{% macro signed_rows(model, condition) -%}
    select cast(1 as integer) as sign, * from {{ ref('int_' ~ model) }} where {{ condition }}
    union all
    select cast(-1 as integer) as sign, * from {{ source('plan', 'replaced_' ~ model) }} where {{ condition }}
{%- endmacro %}

{#- 1.5 -> "150": an edge as a part of a column name. -#}
{% macro edge_name(edge) %}{{ (edge * 100) | round | int }}{% endmacro %}

{#- Lower edge, times 1000, of the bin a value is counted in: 0.005 wide below 1.5, 0.05 below 8, then 1. Every edge of the study's
    figures and tables is one. -#}
{% macro bin_edge(value) -%}
    cast(
        case
            when {{ value }} < {{ var('mild_threshold') }} then ({{ whole_bins(value, 200) }}) * 5
            when {{ value }} < {{ var('severity_8x') }} then ({{ whole_bins(value, 20) }}) * 50
            when {{ value }} < 1e12 then floor({{ value }}) * 1000
            when {{ value }} is not null then 1e15
        end as bigint
    )
{%- endmacro %}

{#- How many whole bins, so many to 1, a value holds. Multiplied it is rounded: 1.15 * 200 is less than 230, so the next edge is asked itself. -#}
{% macro whole_bins(value, bins_per_unit) -%}
    floor({{ value }} * {{ bins_per_unit }})
    + case
        when {{ value }} >= (floor({{ value }} * {{ bins_per_unit }}) + 1) / cast({{ bins_per_unit }} as double) then 1
        when {{ value }} < floor({{ value }} * {{ bins_per_unit }}) / cast({{ bins_per_unit }} as double) then -1
        else 0
    end
{%- endmacro %}
