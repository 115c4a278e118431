{{ config(materialized='view') }}
-- Reads and writes of each drive-hour. Every accepted row, of any role. Grain: drive_id, hour_utc.
-- Reads raw and joins nothing, so that a question about one drive or day skips all others.
with drive_hours as (
    select
        *,
        {{ given_directions('drive_hours') }},
        -- counts are of the time that was observed, so rates are too
        3600.0 * nullif(coalesce(coverage, 1.0), 0.0) as observed_seconds
    from {{ ref('int_drive_hours__identified') }} as drive_hours
),

merged_hours as (
    select
        *,
        {{ merged_latency() }} as merged_latency_us,
        {{ merged_io_count() }} as merged_io_count
    from drive_hours
)

select
    drive_id, hour_utc, read_ios, write_ios,
    merged_io_count as io_count,
{%- for side in ('read', 'write') %}
    case when is_split and {{ side }}_ios > 0 then {{ side }}_latency_us end as {{ side }}_latency_us,
{%- endfor %}
    merged_latency_us as latency_us,
    cast(read_ios as double) / observed_seconds as read_iops,
    cast(write_ios as double) / observed_seconds as write_iops,
    cast(merged_io_count as double) / observed_seconds as iops,
    coverage
from merged_hours
