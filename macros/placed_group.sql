{#- RAID group of a drive-hour: the one of its row. Of a row from a host an operator's mapping is believed before it, and where the row names only the
    host any inventory. `segments`: inventory of the drive in that hour, left joined. -#}
{% macro placed_group(drive_hours, segments) -%}
case
            when {{ drive_hours }}.source is not null and ({{ drive_hours }}.is_group_guessed or {{ segments }}.is_mapped)
                then coalesce({{ segments }}.named_raid_group_id, {{ drive_hours }}.raid_group_id)
            else {{ drive_hours }}.raid_group_id
        end
{%- endmacro %}
