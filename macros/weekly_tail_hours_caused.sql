{#- Tail hours that would have been none without the drive, by drive and ISO week (UTC). -#}
{% macro weekly_tail_hours_caused() %}
    select
        slowest_drive_id as drive_id,
        {{ week_no('hour_utc') }} as week_no,
        count(*) as tail_hours_caused,
        max(hour_utc) as last_tail_hour_utc
    from {{ ref('int_raid_hours__counterfactual') }}
    where is_caused_by_slowest
    group by slowest_drive_id, {{ week_no('hour_utc') }}
{% endmacro %}
