-- Where inventory places each drive, and which drive each alias names, as far as either decides what a drive-hour is compared with.
-- Grain: place_type, drive_id, raid_group_id, role, from_hour_utc.
select
    'segment' as place_type,
    drive_id, raid_group_id,
    role || case when is_mapped then ', mapped' else '' end || case when is_group_guessed then ', guessed' else '' end as role,
    from_hour_utc, to_hour_utc
from {{ ref('int_drives__segments') }}
where is_believed
union all
select 'own segment' as place_type, drive_id, raid_group_id, role, from_hour_utc, to_hour_utc
from {{ ref('int_drives__segments') }}
where not is_believed
union all
-- a name that is another drive's than before changes both drives, and an instant at which it passes the hour that it is in
{%- for named, other in (('drive_id', 'alias'), ('alias', 'drive_id')) %}
select
    'alias' as place_type,
    {{ named }} as drive_id,
    cast(null as string) as raid_group_id,
    coalesce({{ other }}, 'unknown') as role,
    cast(date_trunc('hour', from_utc) as timestamp) as from_hour_utc,
    {{ next_hour('to_utc') }} as to_hour_utc
from {{ ref('int_names') }}
where {{ named }} is not null
union all
{%- endfor %}
{%- for at in ('from_utc', 'to_utc') %}
select
    '{{ at[:-4] }}' as place_type,
    alias as drive_id,
    cast(null as string) as raid_group_id,
    cast({{ at }} as string) as role,
    cast(date_trunc('hour', {{ at }}) as timestamp) as from_hour_utc,
    cast(date_trunc('hour', {{ at }}) as timestamp) + interval 1 hour as to_hour_utc
from {{ ref('int_names') }}
where {{ at }} > timestamp '{{ var("beginning_of_time") }}' and {{ at }} < timestamp '{{ var("end_of_time") }}'
union all
{%- endfor %}
-- whether devices are paths of one drive, which decides whose their hours are when both measured it
select
    'serial' as place_type,
    serials.drive_id,
    cast(null as string) as raid_group_id,
    case when serials.is_one_drive_of_hosts then 'one drive of hosts' when serials.is_one_drive then 'one drive' else 'several devices' end as role,
    timestamp '{{ var("beginning_of_time") }}' as from_hour_utc,
    timestamp '{{ var("end_of_time") }}' as to_hour_utc
from {{ ref('int_serials') }} as serials
union all
select distinct
    'serial' as place_type,
    claims.alias as drive_id,
    cast(null as string) as raid_group_id,
    case when serials.is_one_drive_of_hosts then 'one drive of hosts' when serials.is_one_drive then 'one drive' else 'several devices' end as role,
    timestamp '{{ var("beginning_of_time") }}' as from_hour_utc,
    timestamp '{{ var("end_of_time") }}' as to_hour_utc
from {{ ref('int_names__claimed') }} as claims
inner join {{ ref('int_serials') }} as serials on claims.drive_id = serials.drive_id
where claims.is_device
union all
-- which thresholds a RAID group goes by, where kinds differ in them
select
    'threshold' as place_type,
    inventory.raid_group_id as drive_id,
    inventory.raid_group_id,
    'slow at ' || cast(own.slow_at as string) || ', mild at ' || cast(own.mild_at as string) as role,
    timestamp '{{ var("beginning_of_time") }}' as from_hour_utc,
    timestamp '{{ var("end_of_time") }}' as to_hour_utc
from {{ ref('int_raid_groups__attributes') }} as inventory
inner join {{ ref('int_thresholds') }} as own on inventory.kind = own.kind
where inventory.kind <> 'unknown'
    and exists (select 1 from {{ ref('int_thresholds') }} as others where others.slow_at <> own.slow_at or others.mild_at <> own.mild_at)
union all
-- its host's description of a device that measured a serial together with another one
select
    'device' as place_type,
    drive_id,
    cast(null as string) as raid_group_id,
    peer_kind as role,
    timestamp '{{ var("beginning_of_time") }}' as from_hour_utc,
    timestamp '{{ var("end_of_time") }}' as to_hour_utc
from {{ ref('int_devices__described') }}
union all
-- where only its rows name a drive's RAID group, the drive's kind decides with whom it is compared there
select
    'kind' as place_type,
    drive_id,
    cast(null as string) as raid_group_id,
    peer_kind as role,
    timestamp '{{ var("beginning_of_time") }}' as from_hour_utc,
    timestamp '{{ var("end_of_time") }}' as to_hour_utc
from {{ ref('int_drives__periods') }}
where is_latest
union all
-- and so do the kinds that inventory knows of that RAID group, whenever they were in it
select
    'kinds' as place_type,
    named.raid_group_id || groups.of_kind as drive_id,
    named.raid_group_id || groups.of_kind as raid_group_id,
    named.peer_kind || case when named.is_mixed then ' and others' else '' end as role,
    timestamp '{{ var("beginning_of_time") }}' as from_hour_utc,
    timestamp '{{ var("end_of_time") }}' as to_hour_utc
from (
    select distinct named_raid_group_id as raid_group_id, group_peer_kind as peer_kind, is_of_mixed_group as is_mixed
    from {{ ref('int_drives__periods') }}
    where named_raid_group_id is not null
) as named
cross join (
    select '' as of_kind
{%- for kind in peer_kinds() %}
    union all
    select {{ behind_group("'" ~ kind ~ "'") }} as of_kind
{%- endfor %}
) as groups
