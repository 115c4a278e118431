{{ config(materialized='view') }}
{%- set timezone = "coalesce(periods.timezone, 'UTC')" %}
-- Drive-hours with the drive's inventory in that hour, not now, and with the clock at its site. Grain: drive_id, hour_utc.
select
    drive_hours.drive_id, drive_hours.hour_utc,
    {{ local_hour('drive_hours.hour_utc', timezone) }} as local_hour,
    {{ local_weekday('drive_hours.hour_utc', timezone) }} as local_weekday,
    {{ timezone }} as timezone,
    drive_hours.raid_group_id, drive_hours.kind,
    periods.vendor, periods.model, periods.firmware, periods.flash_cell, periods.capacity_bytes, periods.rpm, periods.interface,
    periods.host, periods.enclosure, periods.site, periods.slot,
    drive_hours.age_year, drive_hours.latency_us, drive_hours.median_latency_us, drive_hours.slowdown, drive_hours.exclusion_reason,
    drive_hours.is_slow, drive_hours.is_slow_15, drive_hours.coverage, drive_hours.io_count, drive_hours.rate_imbalance,
    drive_hours.io_size_bytes, drive_hours.size_imbalance
from {{ ref('fct_drive_hours') }} as drive_hours
left join {{ ref('dim_drive_periods') }} as periods
    on drive_hours.drive_id = periods.drive_id
    and {{ is_valid_at('periods', 'drive_hours.hour_utc') }}
