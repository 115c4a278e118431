{{ config(materialized='view') }}
-- Drive-hours, each the sum of its drive's spans, under the drive's serial number. Grain: drive_id, hour_utc.
-- Rows of arrays that name their own drives pass through. No accepted row is lost without a count: `path_spans` and `part_spans` were added up with the
-- row, `other_spans` gave way to it; what changed hands within a span is in int_drive_days__merged.
{%- set columns = [
    'read_ios', 'write_ios', 'read_latency_us', 'write_latency_us', 'read_blocks', 'write_blocks', 'block_bytes', 'latency_us', 'io_count', 'bytes',
    'coverage', 'min_coverage', 'declared_kind', 'source', 'is_group_guessed'
] %}
with {{ named_spans("(select * from " ~ ref('stg_raw__drive_hours') ~ " where source is not null) as delivered") }},

{{ summed_spans(['hour_utc'], has_group=true) }}

select
    delivered.hour_utc, delivered.drive_id, delivered.raid_group_id,
    delivered.{{ columns | join(',\n    delivered.') }},
    cast(null as string) as shared_serial,
    cast(0 as bigint) as path_spans,
    cast(0 as bigint) as part_spans,
    coalesce(hosts_rows.path_spans + hosts_rows.part_spans + hosts_rows.other_spans + 1, 0) as other_spans
-- This filter must stay outside the staging view. Next to another condition DuckDB marks the retired rows instead of skipping them, at twice the cost.
from {{ ref('stg_raw__drive_hours') }} as delivered
left join hosts_rows on delivered.drive_id = hosts_rows.named_drive_id and delivered.hour_utc = hosts_rows.hour_utc
where delivered.source is null
union all
select
    hosts_rows.hour_utc,
    hosts_rows.named_drive_id as drive_id,
    hosts_rows.raid_group_id,
    hosts_rows.{{ columns | join(',\n    hosts_rows.') }},
    hosts_rows.shared_serial, hosts_rows.path_spans, hosts_rows.part_spans, hosts_rows.other_spans
from hosts_rows
-- an array's report on its own drives takes precedence over a host's
where not exists (
    select 1
    from {{ ref('stg_raw__drive_hours') }} as own
    where own.source is null
        and own.drive_id in (select named_drive_id from hosts_rows)
        and own.drive_id = hosts_rows.named_drive_id
        and own.hour_utc = hosts_rows.hour_utc
)
