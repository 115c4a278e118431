-- Drive-hours as delivered, without the losers of conflicts. Grain: delivery_seq, file_no, row_no.
select
    delivery_seq, file_no, row_no, source, is_alias, is_group_guessed, hour_utc, drive_id, raid_group_id, read_ios, write_ios,
    read_latency_us, write_latency_us, read_blocks, write_blocks,
    coalesce(block_bytes, {{ var('default_block_bytes') }}) as block_bytes,
    latency_us, io_count, bytes, coverage, min_coverage, declared_kind, collected_at, from_utc, to_utc
from {{ source('raw', 'drive_hours') }} as delivered
where {{ is_live('drive_hours', 'delivered') }}
