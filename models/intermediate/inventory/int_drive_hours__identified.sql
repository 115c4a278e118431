{{ config(materialized='view') }}
-- Drive-hours, one row per drive and hour under the drive's serial number. Grain: drive_id, hour_utc.
-- Rows of arrays that name their own drives pass through. Only rows from hosts are looked up and ranked. No accepted row is lost without a count:
-- `path_hours` were added up with the row, `other_hours` gave way to it.
{%- set columns = [
    'read_ios', 'write_ios', 'read_latency_us', 'write_latency_us', 'read_blocks', 'write_blocks', 'block_bytes', 'latency_us', 'io_count', 'bytes',
    'coverage', 'min_coverage', 'declared_kind', 'source', 'is_group_guessed'
] %}
with seen_from_hosts as (
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as serial
    from {{ ref('stg_raw__drive_hours') }} as delivered
    {{ joined_aliases('hour_utc') }}
    where delivered.source is not null
),

{{ named_drives(['hour_utc'], ['raid_group_id', 'declared_kind', 'is_group_guessed']) }},

ranked as (
    select
        *,
        cast(sum(accepted_count) over (partition by named_drive_id, hour_utc) as bigint) as all_count,
        row_number() over (
            partition by named_drive_id, hour_utc
            order by
                {{ latency_rank('hosts_rows') }} asc,
                source asc,
                -- two names of one drive, such as a serial that an operator joined to it: the one that saw more of the hour
                coalesce(coverage, 1.0) desc,
                collected_at desc nulls last,
                drive_id asc
        ) as source_place
    from hosts_rows
)

select
    delivered.hour_utc, delivered.drive_id, delivered.raid_group_id,
    delivered.{{ columns | join(',\n    delivered.') }},
    cast(null as string) as shared_serial,
    cast(0 as bigint) as path_hours,
    coalesce(ranked.all_count, 0) as other_hours
-- This filter must stay outside the staging view. Next to another condition DuckDB marks the retired rows instead of skipping them, at twice the cost.
from {{ ref('stg_raw__drive_hours') }} as delivered
left join ranked
    on delivered.drive_id = ranked.named_drive_id
    and delivered.hour_utc = ranked.hour_utc
    and ranked.source_place = 1
where delivered.source is null
union all
select
    ranked.hour_utc,
    ranked.named_drive_id as drive_id,
    ranked.raid_group_id,
    ranked.{{ columns | join(',\n    ranked.') }},
    ranked.shared_serial,
    ranked.accepted_count - 1 as path_hours,
    ranked.all_count - ranked.accepted_count as other_hours
from ranked
where ranked.source_place = 1
    -- an array's report on its own drives takes precedence over a host's
    and not exists (
        select 1
        from {{ ref('stg_raw__drive_hours') }} as own
        where own.source is null
            and own.drive_id in (select named_drive_id from hosts_rows)
            and own.drive_id = ranked.named_drive_id
            and own.hour_utc = ranked.hour_utc
    )
