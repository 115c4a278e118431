{{ config(materialized='view') }}
-- Samples within hours, one row per drive and time under the drive's serial number. Grain: drive_id, from_utc, to_utc.
with {{ named_spans("(select *, from_utc as hour_utc from " ~ ref('stg_raw__drive_samples') ~ ") as delivered") }},

{{ summed_spans(['from_utc', 'to_utc']) }}

select
    from_utc, to_utc,
    named_drive_id as drive_id,
    read_ios, write_ios, read_latency_us, write_latency_us, read_blocks, write_blocks, block_bytes, latency_us, io_count, bytes, coverage,
    min_coverage, source
from hosts_rows
