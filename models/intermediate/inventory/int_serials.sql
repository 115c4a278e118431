-- Serial numbers that several devices go by, and whether these are one drive. Grain: drive_id.
-- Agreement has to be seen: devices that have a serial at once are paths to one drive only on one host, with one true world wide name, and of one
-- model and capacity wherever both are known; hosts are names of one machine only where each states that world wide name.
-- An operator's mapping decides which drive a device is; other claims to its serial do not count.
with devices as (
    select
        source, drive_id, alias,
        -- a controller names its host but no device, and a drive of several ports has several controllers
        case when not is_controller then host || regexp_extract(alias, '(/.*)$', 1) end as device,
        host, is_derived, valid_from,
        coalesce(valid_until, valid_from) as last_at
    from {{ ref('int_names__claimed') }}
    where is_device
),

several as (
    select
        drive_id,
        greatest(count(distinct device), count(distinct host)) as device_count,
        count(distinct host) as host_count,
        max(case when source = 'mapping' then 1 else 0 end) = 1 as is_mapped
    from devices
    group by drive_id
    having count(distinct device) > 1 or count(distinct host) > 1
),

hosts as (
    select
        devices.drive_id, devices.host,
        min(devices.valid_from) as first_at,
        max(devices.last_at) as last_at
    from devices
    inner join several on devices.drive_id = several.drive_id
    where devices.valid_from is not null
    group by devices.drive_id, devices.host
),

-- a drive that moved was last seen where it was before it was first seen where it is
met as (
    select distinct hosts.drive_id
    from hosts
    inner join hosts as others
        on hosts.drive_id = others.drive_id
        and hosts.host < others.host
        and hosts.first_at <= others.last_at
        and others.first_at <= hosts.last_at
),

-- A device has a serial until it is next looked at, if it has the same one then. Looks less than an hour apart are of one round,
-- in which a device has what it had until another serial is found on it.
named as (
    select
        source, drive_id, device, host, valid_from,
        case
            when lead(drive_id) over looks = drive_id then lead(valid_from) over looks
            else least(valid_from + interval 1 hour, coalesce(lead(valid_from) over looks, valid_from + interval 1 hour))
        end as named_until
    from devices
    where source <> 'mapping' and valid_from is not null and device is not null and not is_derived
    window looks as (partition by source, device order by valid_from, drive_id)
),

at_once as (
    select distinct named.drive_id
    from named
    inner join several on named.drive_id = several.drive_id
    inner join named as others
        on named.source = others.source
        and named.drive_id = others.drive_id
        and named.host = others.host
        and named.device < others.device
        and (
            named.valid_from = others.valid_from
            or (named.valid_from < others.named_until and others.valid_from < named.named_until)
        )
),

-- names of one length are of one kind: an SSD may have one of each
wide_names as (
    select drive_id, count(distinct alias) as wide_name_count, max(alike_count) > 1 as is_of_several
    from (
        select
            claims.drive_id, claims.alias,
            count(*) over (partition by claims.drive_id, claims.source, length(claims.alias)) as alike_count
        from (
            select distinct drive_id, source, alias from {{ ref('int_names__claimed') }} where alias like 'wwn:%'
        ) as claims
    ) as counted
    group by drive_id
),

-- model and capacity of the devices themselves, by source
described as (
    select
        devices.drive_id,
        count(distinct records.model) > 1 or count(distinct records.capacity_bytes) > 1 as is_of_several
    from (select distinct drive_id, source, alias, valid_from from devices) as devices
    inner join {{ ref('stg_raw__drives') }} as records
        on devices.alias = records.drive_id
        and devices.source = records.source
        and devices.valid_from = records.valid_from
    group by devices.drive_id, devices.source
),

differing as (
    select distinct drive_id from described where is_of_several
),

-- hosts that stated the world wide name when they claimed the serial
wide_hosts as (
    select devices.drive_id, count(distinct devices.host) as wide_host_count
    from devices
    inner join {{ ref('int_names__claimed') }} as claims
        on devices.drive_id = claims.drive_id
        and devices.source = claims.source
        and devices.valid_from = claims.valid_from
    where claims.alias like 'wwn:%'
    group by devices.drive_id
),

judged as (
    select
        several.drive_id, several.device_count, several.host_count,
        coalesce(wide_names.wide_name_count, 0) as wide_name_count,
        several.is_mapped,
        differing.drive_id is not null as is_described_differently,
        coalesce(wide_names.is_of_several, false) as is_of_several_names,
        met.drive_id is not null as is_of_several_hosts,
        at_once.drive_id is not null as is_of_devices_at_once,
        coalesce(wide_names.wide_name_count = 1, false) and differing.drive_id is null as has_one_name,
        wide_hosts.wide_host_count = several.host_count as is_named_by_all_hosts
    from several
    left join met on several.drive_id = met.drive_id
    left join at_once on several.drive_id = at_once.drive_id
    left join wide_names on several.drive_id = wide_names.drive_id
    left join differing on several.drive_id = differing.drive_id
    left join wide_hosts on several.drive_id = wide_hosts.drive_id
)

select
    drive_id, device_count, host_count, wide_name_count, is_described_differently,
    not is_mapped
    and (
        is_of_several_names
        or (is_of_several_hosts and not (has_one_name and coalesce(is_named_by_all_hosts, false)))
        or (is_of_devices_at_once and not has_one_name)
    ) as is_shared,
    -- devices of one host that measured it at once are paths to it
    is_mapped or has_one_name as is_one_drive,
    -- devices of several hosts that measured it at once are one measurement, taken twice, where their counters agree over the day
    has_one_name and coalesce(is_named_by_all_hosts, false) as is_one_drive_of_hosts
from judged
