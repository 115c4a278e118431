-- Drive-hours as delivered, the losers of conflicts left out. Grain: drive_id, hour_utc.
select
    delivered.hour_utc,
    delivered.drive_id,
    delivered.raid_group_id,
    delivered.read_ios,
    delivered.write_ios,
    delivered.read_latency_us,
    delivered.write_latency_us,
    delivered.read_blocks,
    delivered.write_blocks,
    coalesce(delivered.block_bytes, {{ var('default_block_bytes') }}) as block_bytes,
    delivered.latency_us,
    delivered.io_count,
    delivered.bytes,
    delivered.coverage,
    delivered.min_coverage,
    delivered.declared_kind
from {{ source('raw', 'drive_hours') }} as delivered
where not exists (
    select 1
    from {{ source('raw', 'retired_drive_hours') }} as retired
    where retired.delivery_seq = delivered.delivery_seq
        and retired.file_no = delivered.file_no
        and retired.row_no = delivered.row_no
)
