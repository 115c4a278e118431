{{ config(meta={'made': 'by_day'}) }}
-- Accepted spans of drive-hours without a row of their own, and drives named by their device. Grain: day_utc, drive_id.
with {{ named_spans("(select * from " ~ ref('stg_raw__drive_hours') ~ " where source is not null and drive_id in (select alias from "
    ~ ref('int_names') ~ " where is_only is not true)) as delivered") }},

counted_spans as (
    select drive_id, hour_utc, shared_serial, path_spans, part_spans, other_spans, cast(0 as bigint) as changed_spans
    from {{ ref('int_drive_hours__measured') }}
    where shared_serial is not null or path_spans > 0 or part_spans > 0 or other_spans > 0
    union all
    -- nobody's: the name may have passed to another drive meanwhile
    select
        drive_id, hour_utc,
        cast(null as string) as shared_serial,
        cast(0 as bigint) as path_spans,
        cast(0 as bigint) as part_spans,
        cast(0 as bigint) as other_spans,
        cast(1 as bigint) as changed_spans
    from seen_spans
    where serial is null
),

merged_spans as (
    select
        cast(hour_utc as date) as day_utc, drive_id, shared_serial,
        case when shared_serial is null then cast(0 as bigint) else cast(1 as bigint) end as shared_hours,
        path_spans, part_spans, other_spans, changed_spans
    from counted_spans
    where hour_utc >= {{ first_computed_hour() }}
    union all
    select day_utc, drive_id, shared_serial, shared_hours, path_spans, part_spans, other_spans, changed_spans
    from {{ source('plan', 'earlier_drive_days__merged') }}
)

select
    day_utc,
    drive_id,
    max(shared_serial) as shared_serial,
    cast(sum(shared_hours) as bigint) as shared_hours,
    cast(sum(path_spans) as bigint) as path_spans,
    cast(sum(part_spans) as bigint) as part_spans,
    cast(sum(other_spans) as bigint) as other_spans,
    cast(sum(changed_spans) as bigint) as changed_spans
from merged_spans
group by day_utc, drive_id
