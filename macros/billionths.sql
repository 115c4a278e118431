{#- A part of one stratum of Mantel and Haenszel's ratio, in whole billionths: events of one side times the other's observations, over those of both. -#}
{% macro billionths(events, others) -%}
    cast(round(1e9 * {{ events }} * {{ others }} / (drive_hours + other_drive_hours)) as decimal(38, 0))
{%- endmacro %}
