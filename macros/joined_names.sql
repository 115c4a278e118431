{#- Joins to rows `delivered` of raw the drive that their name means at an instant of theirs, as `names.drive_id`; a serial means
    itself unless an operator says which other one it is. Arrays' reports on their own drives are never looked up. -#}
{% macro joined_names(instant) -%}
left join {{ ref('int_names') }} as names
        on delivered.source is not null
        and delivered.drive_id = names.alias
        and names.from_utc <= delivered.{{ instant }}
        and names.to_utc > delivered.{{ instant }}
{%- endmacro %}
