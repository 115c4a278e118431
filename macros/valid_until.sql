{#- When a record of raw inventory stops being valid, null when it never does. A source that watches drives repeats what it sees in many records:
    a record of it without an end is valid until a later one of the same place ends. `place`: the columns that identify the drive or name, as SQL. -#}
{% macro valid_until(place) -%}
case
            when {{ reports_ends('source') }}
                then min(valid_to) over (partition by source, {{ place }} order by valid_from rows between current row and unbounded following)
            else valid_to
        end
{%- endmacro %}
