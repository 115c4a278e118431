-- What was measured within hours, where somebody asked for it, under the drive it is of; the losers of conflicts left out, of several sources
-- the one that is believed first, of those that saw enough of it. Grain: drive_id, from_utc, to_utc.
with named as (
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as named_drive_id
    from (
        select *
        from {{ source('raw', 'drive_samples') }} as rows_of_raw
        where {{ is_live('drive_samples', 'rows_of_raw') }}
    ) as delivered
    {{ joined_aliases('from_utc') }}
),

ranked as (
    select
        *,
        row_number() over (
            partition by named_drive_id, from_utc, to_utc
            order by
                {{ latency_rank('named') }} asc,
                source asc nulls first,
                -- two names of one drive, such as two paths to it: the one that saw more of the time
                coalesce(coverage, 1.0) desc,
                collected_at desc nulls last,
                drive_id asc
        ) as source_place
    from named
)

select
    from_utc,
    to_utc,
    named_drive_id as drive_id,
    read_ios,
    write_ios,
    read_latency_us,
    write_latency_us,
    read_blocks,
    write_blocks,
    coalesce(block_bytes, {{ var('default_block_bytes') }}) as block_bytes,
    latency_us,
    io_count,
    bytes,
    coverage,
    min_coverage,
    source
from ranked
where source_place = 1
