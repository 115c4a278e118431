{#- Joins to rows `delivered` of raw the drive that their name means at an instant of theirs, as `aliases.drive_id`; a serial means
    itself unless an operator says which other one it is. Arrays' reports on their own drives are never looked up. -#}
{% macro joined_aliases(instant) -%}
left join {{ ref('int_aliases__periods') }} as aliases
        on delivered.source is not null
        and delivered.drive_id = aliases.alias
        and aliases.from_hour_utc <= delivered.{{ instant }}
        and aliases.to_hour_utc > delivered.{{ instant }}
{%- endmacro %}
