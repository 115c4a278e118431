{{ config(materialized='incremental', unique_key='drive_id', incremental_strategy='delete+insert', on_schema_change='fail') }}
-- First and last drive-hour of each drive that hosts saw; made anew from all of them when an alias comes to name another drive.
-- Beside what has arrived it reads again all that hosts saw of the same hours, so that an hour that has arrived is known whole. Grain: drive_id.
with delivered as (
    select * from {{ source('raw', 'arrived_drive_hours') }} where source is not null
    union all
    select * from {{ source('raw', 'reread_drive_hours') }}
),

named as (
    select
        coalesce(aliases.drive_id, delivered.drive_id) as drive_id,
        delivered.hour_utc,
        delivered.raid_group_id,
        delivered.is_group_guessed,
        delivered.declared_kind,
        row_number() over (
            partition by coalesce(aliases.drive_id, delivered.drive_id)
            order by
                delivered.hour_utc desc,
                {{ latency_rank('delivered') }} asc,
                delivered.source asc,
                coalesce(delivered.coverage, 1.0) desc,
                delivered.collected_at desc nulls last,
                delivered.drive_id asc
        ) as recency_rank,
        min(delivered.hour_utc) over (partition by coalesce(aliases.drive_id, delivered.drive_id)) as first_hour_utc
    from delivered
    {{ joined_aliases('hour_utc') }}
    where {{ is_live('drive_hours', 'delivered') }}
),

arrived as (
    select
        drive_id,
        first_hour_utc,
        hour_utc as last_hour_utc,
        raid_group_id as last_raid_group_id,
        is_group_guessed as last_is_group_guessed,
        declared_kind
    from named
    where recency_rank = 1
)

{% if is_incremental() %}
select
    arrived.drive_id,
    least(arrived.first_hour_utc, coalesce(known.first_hour_utc, arrived.first_hour_utc)) as first_hour_utc,
    greatest(arrived.last_hour_utc, coalesce(known.last_hour_utc, arrived.last_hour_utc)) as last_hour_utc,
{%- for name in ('last_raid_group_id', 'last_is_group_guessed', 'declared_kind') %}
    case when known.last_hour_utc > arrived.last_hour_utc then known.{{ name }} else arrived.{{ name }} end as {{ name }}{{ ',' if not loop.last }}
{%- endfor %}
from arrived
left join {{ this }} as known on arrived.drive_id = known.drive_id
{% else %}
select
    drive_id, first_hour_utc, last_hour_utc, last_raid_group_id, last_is_group_guessed, declared_kind
from arrived
{% endif %}
