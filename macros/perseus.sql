{#- A polynomial whose coefficients an array holds, the constant first. Horner's order: no power of a large number is ever made. -#}
{% macro polynomial(coefficients, degree, x) -%}
    {%- set nested = namespace(sql=nth(coefficients, degree + 1)) -%}
    {%- for power in range(degree - 1, -1, -1) -%}
        {%- set nested.sql = '(' ~ nth(coefficients, power + 1) ~ ' + ' ~ x ~ ' * ' ~ nested.sql ~ ')' -%}
    {%- endfor -%}
    {{ nested.sql }}
{%- endmacro %}

{#- Perseus' risk of a day by its events (slow windows) and their mean ratio: `perseus_risks`, a row for each of `perseus_ratios`, a column for
    each of `perseus_events`, both from the greatest on; the first that hold decide. -#}
{% macro perseus_risk(event_count, event_ratio) -%}
    case
{%- for ratio in var('perseus_ratios') %}
{%- set risks = var('perseus_risks')[loop.index0] %}
{%- for events in var('perseus_events') %}
        when {{ event_ratio }} >= {{ ratio }} and {{ event_count }} >= {{ events }} then {{ risks[loop.index0] }}
{%- endfor %}
{%- endfor %}
        else 0
    end
{%- endmacro %}
