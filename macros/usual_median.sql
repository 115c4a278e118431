{#- Usual latency of a RAID group at an hour: the median of its own medians at the same hour of the week in the `group_past_weeks` weeks
    before, null without any. Windows over the valid RAID-hours in `raid_hours`, not a join: a query without it does not pay for it. -#}
{% macro usual_median(raid_hours) -%}
    {%- set past_medians = [] -%}
    {%- for week in range(1, var('group_past_weeks') + 1) -%}
        {%- do past_medians.append(
            'max(' ~ raid_hours ~ '.median_latency_us) over (partition by ' ~ raid_hours ~ '.raid_group_id order by ' ~ raid_hours ~ '.hour_utc'
            ~ ' range between interval ' ~ 7 * week ~ ' day preceding and interval ' ~ 7 * week ~ ' day preceding)'
        ) -%}
    {%- endfor -%}
    {{ median_of(past_medians) }}
{%- endmacro %}
