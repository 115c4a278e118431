-- Drive-hours of each ISO week (UTC) that have no slowdown, by reason. Grain: week_utc, kind, exclusion_reason.
select
    date_trunc('week', hour_utc) as week_utc,
    kind,
    exclusion_reason,
    count(*) as drive_hours
from {{ ref('fct_drive_hours') }}
where exclusion_reason is not null and {{ is_whole_week('hour_utc') }}
group by date_trunc('week', hour_utc), kind, exclusion_reason
