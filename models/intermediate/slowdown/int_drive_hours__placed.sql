{{ config(meta={'made': 'with_days'}) }}
-- Measurements of each drive-hour, and the group and role of its drive as far as inventory knows. Rows of any role. Grain: drive_id, hour_utc.
with placed_hours as (
    select
        drive_hours.*,
        {{ placed_group('drive_hours', 'segments') }} as named_raid_group_id,
        segments.raid_group_id as inventory_raid_group_id,
        segments.role as inventory_role,
        drive_hours.source is not null and drive_hours.is_group_guessed and coalesce(segments.is_group_guessed, true) as is_placed_by_guess,
        coalesce(own_segments.role, segments.role, 'data') = 'data' as is_data_drive,
        {{ given_directions('drive_hours') }},
        coalesce(drive_hours.coverage, 1.0) >= drive_hours.min_coverage as is_covered
    from {{ ref('int_drive_hours__identified') }} as drive_hours
    left join {{ ref('int_drives__segments') }} as segments
        on drive_hours.drive_id = segments.drive_id
        and segments.is_believed
        and segments.from_hour_utc <= drive_hours.hour_utc
        and segments.to_hour_utc > drive_hours.hour_utc
    -- where inventory names several groups at once, the one of the row counts: few drives have a segment that is not believed
    left join {{ ref('int_drives__segments') }} as own_segments
        on drive_hours.drive_id = own_segments.drive_id
        and not own_segments.is_believed
        and drive_hours.raid_group_id = own_segments.named_raid_group_id
        and own_segments.from_hour_utc <= drive_hours.hour_utc
        and own_segments.to_hour_utc > drive_hours.hour_utc
),

named_groups as (
    select distinct named_raid_group_id, group_peer_kind, is_of_mixed_group
    from {{ ref('int_drives__periods') }}
),

kinds as (
    select
        placed_hours.*,
        coalesce(drives.peer_kind, devices.peer_kind, {{ peer_kind('placed_hours.declared_kind', 'cast(null as string)', 'placed_hours.drive_id') }}) as peer_kind,
        named_groups.group_peer_kind,
        coalesce(named_groups.is_of_mixed_group, false) as is_of_mixed_group
    from placed_hours
    left join (select drive_id, peer_kind from {{ ref('int_drives__periods') }} where is_latest) as drives
        on placed_hours.drive_id = drives.drive_id
    -- another device measured its serial, so its own host describes it
    left join {{ ref('int_devices__described') }} as devices on placed_hours.drive_id = devices.drive_id and placed_hours.shared_serial is not null
    left join named_groups on placed_hours.named_raid_group_id = named_groups.named_raid_group_id
),

grouped_hours as (
    select *, {{ peer_group('named_raid_group_id', 'peer_kind', 'group_peer_kind', 'is_placed_by_guess', 'is_of_mixed_group') }} as raid_group_id_of_kind
    from kinds
)

select
    drive_id, hour_utc,
    raid_group_id_of_kind as raid_group_id,
    -- drives that only share a host are no array
    not is_placed_by_guess and (is_of_mixed_group or raid_group_id_of_kind <> named_raid_group_id) as is_of_mixed_array,
    -- the hours themselves say what kinds are in a group that inventory does not know (int_drive_hours__measured)
    case when group_peer_kind is null then peer_kind end as kind_in_unknown_group,
    declared_kind,
    is_placed_by_guess as is_group_guessed,
    inventory_raid_group_id,
    coalesce(inventory_role = 'data', false) as is_data_in_inventory,
    shared_serial, path_spans, part_spans, other_spans, is_data_drive, is_covered, coverage,
    {{ merged_latency() }} as latency_us,
    {{ merged_io_count() }} as io_count,
    {{ merged_bytes() }} as io_bytes,
    case when is_split and read_ios > 0 then read_latency_us end as read_latency_us,
    case when is_split and write_ios > 0 then write_latency_us end as write_latency_us
from grouped_hours
