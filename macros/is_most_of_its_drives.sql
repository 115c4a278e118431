{#- Whether as many drives of a RAID-hour are slow as is possible. Slow drives are above the median, so of n drives at most floor((n - 1) / 2) can be slow. -#}
{% macro is_most_of_its_drives(raid_hours) -%}
{%- set cause_group_drives = 2 %}{#- or as many slow drives as slowdowns can show, at least this many: one of four is only a slow drive -#}
{{ raid_hours }}.slow_drive_count >= {{ cause_group_drives }}
        and {{ raid_hours }}.reporting_drive_count <= 2 * {{ raid_hours }}.slow_drive_count + 2
{%- endmacro %}
