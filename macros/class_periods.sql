{#- Hours with a slowdown and slow ones of an ISO week or a month (UTC), by model and year of age and by `key`, a column of int_drive_days. -#}
{% macro class_periods(key, period='week') %}
{%- set start = "cast(date_trunc('" ~ period ~ "', cast(days.day_utc as timestamp)) as timestamp)" %}
{%- set age_class = "coalesce(cast(" ~ age_year('drives.deployed_on', 'days.day_utc') ~ " as string), 'unknown')" %}
    select
        {{ start }} as {{ period }}_utc,
        days.{{ key }},
        drives.kind,
        coalesce(drives.model, 'unknown') as model,
        {{ age_class }} as age_year,
        count(distinct days.day_utc) as day_count,
        cast(sum(days.slowdown_hours) as bigint) as drive_hours,
        cast(sum(days.slow_hours) as bigint) as slow_hours
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('int_drives') }} as drives on days.drive_id = drives.drive_id
    where days.slowdown_hours > 0
    group by {{ start }}, days.{{ key }}, drives.kind, coalesce(drives.model, 'unknown'), {{ age_class }}
{% endmacro %}
