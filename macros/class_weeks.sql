{#- Hours with a slowdown and slow ones of an ISO week (UTC), by model and year of age and by `key`, a column of int_drive_days. -#}
{% macro class_weeks(key) %}
    select
        cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp) as week_utc,
        days.{{ key }},
        drives.kind,
        coalesce(drives.model, 'unknown') as model,
        coalesce(cast({{ age_year('drives.deployed_on', 'days.day_utc') }} as string), 'unknown') as age_year,
        cast(sum(days.slowdown_hours) as bigint) as drive_hours,
        cast(sum(days.slow_hours) as bigint) as slow_hours
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('int_drives') }} as drives on days.drive_id = drives.drive_id
    where days.slowdown_hours > 0
    group by
        cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp),
        days.{{ key }},
        drives.kind,
        coalesce(drives.model, 'unknown'),
        coalesce(cast({{ age_year('drives.deployed_on', 'days.day_utc') }} as string), 'unknown')
{% endmacro %}
