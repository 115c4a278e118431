-- Accepted drive-hours of the status window's days that have no row of their own, by what became of them. Grain: one row.
select
    cast(status_window.first_hour_utc as date) as first_day_utc,
    coalesce(cast(sum(merged.path_spans) as bigint), 0) as path_spans,
    coalesce(cast(sum(merged.part_spans) as bigint), 0) as part_spans,
    coalesce(cast(sum(merged.other_spans) as bigint), 0) as other_spans,
    coalesce(cast(sum(merged.changed_spans) as bigint), 0) as changed_spans
from {{ ref('fct_status_window') }} as status_window
left join {{ ref('int_drive_days__merged') }} as merged on merged.day_utc >= cast(status_window.first_hour_utc as date)
group by cast(status_window.first_hour_utc as date)
