{#- Until when a record of raw inventory holds. A source that watches drives tells in many records what it sees all the while: one without an end
    ends where a later one of the same place does. `place`: the columns that say of whom or what a record is, in the text of SQL. -#}
{% macro held_until(place) -%}
case
            when source in ('{{ var("watching_sources") | join("', '") }}')
                then min(valid_to) over (partition by source, {{ place }} order by valid_from rows between current row and unbounded following)
            else valid_to
        end
{%- endmacro %}
