{{ config(materialized='incremental', unique_key='drive_id', incremental_strategy='delete+insert', on_schema_change='fail') }}
-- First and last drive-hour of each drive that an array told of itself. Rows are corrected but never taken back, so a span only grows.
-- Grain: drive_id.
with arrived as (
    select
        delivered.drive_id,
        min(delivered.hour_utc) as first_hour_utc,
        max(delivered.hour_utc) as last_hour_utc,
        max_by(delivered.raid_group_id, delivered.hour_utc) as last_raid_group_id,
        max_by(delivered.declared_kind, delivered.hour_utc) as declared_kind
    from {{ source('raw', 'arrived_drive_hours') }} as delivered
    where delivered.source is null
        and {{ is_live('drive_hours', 'delivered') }}
    group by delivered.drive_id
),

known as (
{%- if is_incremental() %}
    select * from {{ this }}
{%- else %}
    select * from {{ source('plan', 'pruned_spans') }}
{%- endif %}
)

select
    arrived.drive_id,
    least(arrived.first_hour_utc, coalesce(known.first_hour_utc, arrived.first_hour_utc)) as first_hour_utc,
    greatest(arrived.last_hour_utc, coalesce(known.last_hour_utc, arrived.last_hour_utc)) as last_hour_utc,
    -- at the same hour what has just arrived corrects what was known
    case
        when known.last_hour_utc > arrived.last_hour_utc then known.last_raid_group_id
        else arrived.last_raid_group_id
    end as last_raid_group_id,
    case when known.last_hour_utc > arrived.last_hour_utc then known.declared_kind else arrived.declared_kind end as declared_kind
from arrived
left join known on arrived.drive_id = known.drive_id
{%- if not is_incremental() %}
union all
-- drives of which raw has no row any more
select drive_id, first_hour_utc, last_hour_utc, last_raid_group_id, declared_kind
from known
where drive_id not in (select drive_id from arrived)
{%- endif %}
