{{ config(materialized='view') }}
-- Measurements of each drive-hour, with its peers' group and its drive's role. Rows of any role. Grain: drive_id, hour_utc.
-- A view over the table, so that the table's rows need not wait until the kinds in each hour are known: DuckDB would keep all of them.
with hour_kinds as (
    select raid_group_id, hour_utc, min(nullif(kind_in_unknown_group, 'unknown')) as peer_kind
    from {{ ref('int_drive_hours__placed') }}
    where kind_in_unknown_group is not null
    group by raid_group_id, hour_utc
),

grouped_hours as (
    select
        placed.*,
        case
            when placed.kind_in_unknown_group is null then placed.raid_group_id
            else {{ peer_group('placed.raid_group_id', 'placed.kind_in_unknown_group', 'hour_kinds.peer_kind', 'placed.is_group_guessed', 'false') }}
        end as raid_group_id_of_kind
    from {{ ref('int_drive_hours__placed') }} as placed
    left join hour_kinds on placed.raid_group_id = hour_kinds.raid_group_id and placed.hour_utc = hour_kinds.hour_utc
)

select
    drive_id, hour_utc,
    raid_group_id_of_kind as raid_group_id,
    is_of_mixed_array or (not is_group_guessed and raid_group_id_of_kind <> raid_group_id) as is_of_mixed_array,
    declared_kind, is_group_guessed,
    coalesce(inventory_raid_group_id = raid_group_id_of_kind, false) as is_where_inventory_says,
    case when is_data_in_inventory and inventory_raid_group_id <> raid_group_id_of_kind then inventory_raid_group_id end as absent_from_raid_group_id,
    shared_serial, path_spans, part_spans, other_spans, is_data_drive, is_covered, coverage, latency_us, io_count, io_bytes, read_latency_us,
    write_latency_us
from grouped_hours
