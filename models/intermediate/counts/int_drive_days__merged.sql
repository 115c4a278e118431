{{ config(meta={'made': 'by_day'}) }}
-- Accepted drive-hours without a row of their own, and drives named by their device. Grain: day_utc, drive_id.
select
    cast(hour_utc as date) as day_utc,
    drive_id,
    max(shared_serial) as shared_serial,
    {{ counted('shared_serial is not null') }} as shared_hours,
    cast(sum(path_hours) as bigint) as path_hours,
    cast(sum(other_hours) as bigint) as other_hours
from {{ ref('int_drive_hours__measured') }}
where shared_serial is not null or path_hours > 0 or other_hours > 0
group by cast(hour_utc as date), drive_id
