{{ config(materialized='view') }}
-- First and last accepted drive-hour of each drive, whoever told of them. Grain: drive_id.
select own.drive_id, own.first_hour_utc, own.last_hour_utc, own.last_raid_group_id, false as last_is_group_guessed, own.declared_kind
from {{ ref('int_drives__own_spans') }} as own
where not exists (select 1 from {{ ref('int_drives__host_spans') }} as hosts where hosts.drive_id = own.drive_id)
union all
select
    hosts.drive_id,
    least(hosts.first_hour_utc, coalesce(own.first_hour_utc, hosts.first_hour_utc)) as first_hour_utc,
    greatest(hosts.last_hour_utc, coalesce(own.last_hour_utc, hosts.last_hour_utc)) as last_hour_utc,
    case
        when own.last_hour_utc >= hosts.last_hour_utc then own.last_raid_group_id
        when hosts.last_is_group_guessed or segments.is_mapped then coalesce(segments.raid_group_id, hosts.last_raid_group_id)
        else hosts.last_raid_group_id
    end as last_raid_group_id,
    case
        when own.last_hour_utc >= hosts.last_hour_utc or not hosts.last_is_group_guessed then false
        else coalesce(segments.is_group_guessed, true)
    end as last_is_group_guessed,
    case when own.last_hour_utc >= hosts.last_hour_utc then own.declared_kind else hosts.declared_kind end as declared_kind
from {{ ref('int_drives__host_spans') }} as hosts
left join {{ ref('int_drives__own_spans') }} as own on hosts.drive_id = own.drive_id
left join {{ ref('int_drives__segments') }} as segments
    on hosts.drive_id = segments.drive_id
    and segments.from_hour_utc <= hosts.last_hour_utc
    and segments.to_hour_utc > hosts.last_hour_utc
