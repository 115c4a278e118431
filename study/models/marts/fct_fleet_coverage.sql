{{ config(meta={'made': 'each_day'}) }}
-- Drive-hours that should have come, that came, and that could be measured, over all weeks. Grain: kind.
with totals as (
    select
        kind,
        cast(sum(expected_drive_hours) as bigint) as expected_drive_hours,
        cast(sum(reported_drive_hours) as bigint) as reported_drive_hours,
        cast(sum(drive_hours) as bigint) as drive_hours
    from {{ source('marts', 'fct_weekly_coverage') }}
    group by kind
)

select
    kind, expected_drive_hours, reported_drive_hours,
    cast(reported_drive_hours as double) / cast(expected_drive_hours as double) as reported_ratio,
    drive_hours,
    cast(drive_hours as double) / cast(expected_drive_hours as double) as measured_ratio
from totals
