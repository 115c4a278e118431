{{ config(materialized='view') }}
-- Drive-hours, one row per drive and hour under the drive's serial number. Grain: drive_id, hour_utc.
-- Rows of arrays that name their own drives pass through. Only rows from hosts are looked up and ranked.
with seen_from_hosts as (
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as named_drive_id
    from {{ ref('stg_raw__drive_hours') }} as delivered
    {{ joined_aliases('hour_utc') }}
    where delivered.source is not null
),

ranked as (
    select
        *,
        row_number() over (
            partition by named_drive_id, hour_utc
            order by
                {{ latency_rank('seen_from_hosts') }} asc,
                source asc,
                -- two names of one drive, such as two paths to it: the one that saw more of the hour
                coalesce(coverage, 1.0) desc,
                collected_at desc nulls last,
                drive_id asc
        ) as source_place
    from seen_from_hosts
)

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
    delivered.block_bytes,
    delivered.latency_us,
    delivered.io_count,
    delivered.bytes,
    delivered.coverage,
    delivered.min_coverage,
    delivered.declared_kind,
    delivered.source,
    delivered.is_group_guessed
-- This filter must stay outside the staging view. Next to another condition DuckDB marks the retired rows instead of skipping them, at twice the cost.
from {{ ref('stg_raw__drive_hours') }} as delivered
where delivered.source is null
union all
select
    ranked.hour_utc,
    ranked.named_drive_id as drive_id,
    ranked.raid_group_id,
    ranked.read_ios,
    ranked.write_ios,
    ranked.read_latency_us,
    ranked.write_latency_us,
    ranked.read_blocks,
    ranked.write_blocks,
    ranked.block_bytes,
    ranked.latency_us,
    ranked.io_count,
    ranked.bytes,
    ranked.coverage,
    ranked.min_coverage,
    ranked.declared_kind,
    ranked.source,
    ranked.is_group_guessed
from ranked
where ranked.source_place = 1
    -- what an array says of its own drives is believed before what a host sees of them
    and not exists (
        select 1
        from {{ ref('stg_raw__drive_hours') }} as own
        where own.source is null
            and own.drive_id in (select named_drive_id from seen_from_hosts)
            and own.drive_id = ranked.named_drive_id
            and own.hour_utc = ranked.hour_utc
    )
