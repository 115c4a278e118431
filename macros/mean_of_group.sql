{#- A mean that is exact to the last bit in any order of the rows, mostly of latencies in us: summed as whole numbers of 2^-52. The sum goes
    back to doubles in two parts that are both exact, so that it is rounded once. Values are capped at 30 years (1e15 us); what is below 1 is
    rounded to 2^-52. -#}
{% macro mean_of_group(value) -%}
    {%- set parts = 4503599627370496 -%}
    {%- set sum = 'sum(' ~ whole_parts('case when ' ~ value ~ ' > 1e15 then 1e15 else ' ~ value ~ ' end', parts) ~ ')' -%}
    (cast({{ sum }} - {{ sum }} % {{ parts }} as double) + cast({{ sum }} % {{ parts }} as double)) / {{ parts }} / count({{ value }})
{%- endmacro %}
