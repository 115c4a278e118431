{{ config(meta={'made': 'with_days'}) }}
-- What each drive-hour measured, and the role its drive had. Rows of any role. Grain: drive_id, hour_utc.
with drive_hours as (
    select * from {{ ref('int_drive_hours__identified') }}
),

placed as (
    select
        drive_hours.*,
        {{ placed_group('drive_hours', 'segments') }} as placed_raid_group_id,
        segments.raid_group_id as inventory_raid_group_id,
        segments.role as inventory_role,
        drive_hours.source is not null and drive_hours.is_group_guessed and coalesce(segments.is_group_guessed, true) as is_placed_by_guess,
        coalesce(own_segments.role, segments.role, 'data') = 'data' as is_data_drive,
        {{ given_directions('drive_hours') }},
        coalesce(drive_hours.coverage, 1.0) >= drive_hours.min_coverage as is_covered
    from drive_hours
    left join {{ ref('int_drives__segments') }} as segments
        on drive_hours.drive_id = segments.drive_id
        and segments.is_believed
        and segments.from_hour_utc <= drive_hours.hour_utc
        and segments.to_hour_utc > drive_hours.hour_utc
    -- where inventory names several groups at once, the one of the row counts: few drives have a segment that is not believed
    left join {{ ref('int_drives__segments') }} as own_segments
        on drive_hours.drive_id = own_segments.drive_id
        and not own_segments.is_believed
        and drive_hours.raid_group_id = own_segments.raid_group_id
        and own_segments.from_hour_utc <= drive_hours.hour_utc
        and own_segments.to_hour_utc > drive_hours.hour_utc
)

select
    drive_id,
    hour_utc,
    placed_raid_group_id as raid_group_id,
    declared_kind,
    is_placed_by_guess as is_group_guessed,
    coalesce(inventory_raid_group_id = placed_raid_group_id, false) as is_where_inventory_says,
    case when inventory_role = 'data' and inventory_raid_group_id <> placed_raid_group_id then inventory_raid_group_id end as absent_from_raid_group_id,
    shared_serial,
    path_hours,
    other_hours,
    is_data_drive,
    is_covered,
    coverage,
    {{ merged_latency() }} as latency_us,
    {{ merged_io_count() }} as io_count,
    {{ merged_bytes() }} as io_bytes,
    case when is_split and read_ios > 0 then read_latency_us end as read_latency_us,
    case when is_split and write_ios > 0 then write_latency_us end as write_latency_us
from placed
