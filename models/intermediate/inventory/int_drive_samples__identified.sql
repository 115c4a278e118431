{{ config(materialized='view') }}
-- Samples within hours, one row per drive and time under the drive's serial number. Grain: drive_id, from_utc, to_utc.
with seen_from_hosts as (
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as serial
    from {{ ref('stg_raw__drive_samples') }} as delivered
    {{ joined_aliases('from_utc') }}
),

{{ named_drives(['from_utc', 'to_utc']) }},

ranked as (
    select
        *,
        row_number() over (
            partition by named_drive_id, from_utc, to_utc
            order by
                {{ latency_rank('hosts_rows') }} asc,
                source asc nulls first,
                -- two names of one drive, such as a serial that an operator joined to it: the one that saw more of the time
                coalesce(coverage, 1.0) desc,
                collected_at desc nulls last,
                drive_id asc
        ) as source_place
    from hosts_rows
)

select
    from_utc, to_utc,
    named_drive_id as drive_id,
    read_ios, write_ios, read_latency_us, write_latency_us, read_blocks, write_blocks, block_bytes, latency_us, io_count, bytes, coverage,
    min_coverage, source
from ranked
where source_place = 1
