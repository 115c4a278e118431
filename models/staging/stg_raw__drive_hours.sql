-- Drive-hours as delivered, under the drive they are of; the losers of conflicts left out. Grain: drive_id, hour_utc.
-- Only what hosts say of the drives they see is looked up and held against each other.
with seen_from_hosts as (
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as named_drive_id
    from (
        select *
        from {{ source('raw', 'drive_hours') }} as rows_of_raw
        where {{ is_live('drive_hours', 'rows_of_raw') }}
    ) as delivered
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
    coalesce(delivered.block_bytes, {{ var('default_block_bytes') }}) as block_bytes,
    delivered.latency_us,
    delivered.io_count,
    delivered.bytes,
    delivered.coverage,
    delivered.min_coverage,
    delivered.declared_kind,
    delivered.source,
    delivered.is_group_guessed
-- the source is asked for outside: beside another condition DuckDB marks the retired rows instead of leaving them out, at twice the cost
from (
    select *
    from {{ source('raw', 'drive_hours') }} as rows_of_raw
    where {{ is_live('drive_hours', 'rows_of_raw') }}
) as delivered
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
    coalesce(ranked.block_bytes, {{ var('default_block_bytes') }}) as block_bytes,
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
        from {{ source('raw', 'drive_hours') }} as own
        where own.source is null
            and own.drive_id in (select named_drive_id from seen_from_hosts)
            and own.drive_id = ranked.named_drive_id
            and own.hour_utc = ranked.hour_utc
    )
