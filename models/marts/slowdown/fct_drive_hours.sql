-- Slowdown and imbalance of each drive-hour of a data drive in a RAID group wide enough to have peers. Grain: drive_id, hour_utc.
with drive_hours as (
    select
        drive_hours.*,
        coalesce(drives.kind, 'unknown') as kind,
        {{ days_between('drives.deployed_on', 'drive_hours.hour_utc') }} as deployed_days
    from {{ ref('int_drive_hours') }} as drive_hours
    left join {{ ref('dim_drives') }} as drives on drive_hours.drive_id = drives.drive_id
    where drive_hours.is_in_population
)

select
    drive_id,
    hour_utc,
    raid_group_id,
    kind,
    latency_us,
    median_latency_us,
    slowdown,
    exclusion_reason,
    coalesce(slowdown >= {{ var('slow_threshold') }}, false) as is_slow,
    coalesce(slowdown >= {{ var('mild_threshold') }}, false) as is_slow_15,
    coverage,
    io_count,
    rate_imbalance,
    io_size_bytes,
    size_imbalance,
    read_slowdown,
    write_slowdown,
    -- the first year is year 1; an hour before deployment has none
    case
        when deployed_days >= 0 then cast(floor(deployed_days / {{ var('days_per_age_year') }}) as bigint) + 1
    end as age_year
from drive_hours
