-- Serial numbers that several devices go by, and whether these are one drive. Grain: drive_id.
-- Agreement has to be seen: devices that have a serial at once are paths to one drive only on one host, with one true world wide name, and of one
-- model, kind and capacity wherever both are known; hosts are names of one machine only where each states that world wide name.
-- An operator's mapping decides which drive a device is; other claims to its serial do not count.
with claims as (
    select
        source, drive_id, alias, is_derived, valid_from,
        nullif(host, '') as host,
        -- a controller names its host but no device, and a drive of several ports has several controllers
        case when is_device and not is_controller then host || regexp_extract(alias, '(/.*)$', 1) end as device,
        coalesce(valid_until, valid_from) as last_at,
        is_device and source = 'mapping' as is_mapping,
        case when alias like 'wwn:%' then alias end as wide_name
    from {{ ref('int_names__claimed') }}
),

-- A device has a serial until it is next looked at, if it has the same one then. Looks less than an hour apart are of one round,
-- in which a device has what it had until another serial is found on it. lsblk and Ceph list all: a device that they no longer list is gone.
named_devices as (
    select
        source, drive_id, host, valid_from,
        case
            when lead(drive_id) over looks = drive_id then lead(valid_from) over looks
            else greatest(
                least(valid_from + case when source in ('lsblk', 'ceph') then interval 2 minute else interval 60 minute end, lead(valid_from) over looks),
                valid_from + interval 1 microsecond
            )
        end as named_until
    from (
        select distinct source, drive_id, device, host, valid_from
        from claims
        where not is_mapping and not is_derived and device is not null and valid_from is not null
    ) as looked
    window looks as (partition by source, device order by valid_from, drive_id)
),

-- several devices of a host had it at once: a look at one found it before another had lost it
at_once as (
    select
        drive_id,
        valid_from < max(named_until) over (
            partition by source, drive_id, host order by valid_from rows between unbounded preceding and 1 preceding
        ) as is_at_once
    from named_devices
),

-- a drive that moved was last seen where it was before it was first seen where it is
hosts as (
    select
        drive_id,
        min(valid_from) <= max(max(last_at)) over (
            partition by drive_id order by min(valid_from) rows between unbounded preceding and 1 preceding
        ) as is_met
    from claims
    where host is not null and valid_from is not null
    group by drive_id, host
),

-- model, kind and capacity of the devices themselves, by source
described_devices as (
    select claims.drive_id
    from claims
    inner join {{ ref('stg_raw__drives') }} as records
        on claims.alias = records.drive_id and claims.source = records.source and claims.valid_from = records.valid_from
    where claims.host is not null
    group by claims.drive_id, claims.source
    having count(distinct records.model) > 1 or count(distinct nullif(records.kind, 'unknown')) > 1 or count(distinct records.capacity_bytes) > 1
),

-- names of one length are of one kind: an SSD may have one of each
wide_claims as (
    select
        *,
        wide_name <> min(wide_name) over (partition by drive_id, source, length(wide_name)) as is_other_name,
        -- hosts that stated the world wide name when they claimed the serial
        case when valid_from is not null and max(wide_name) over (partition by drive_id, source, valid_from) is not null then host end as naming_host
    from claims
),

shared_names as (
    select
        drive_id,
        count(distinct wide_name) as wide_name_count,
        greatest(count(distinct device), count(distinct host)) as device_count,
        count(distinct host) as host_count,
        bool_or(is_mapping) as is_mapped,
        coalesce(bool_or(is_other_name), false) as is_of_several_names,
        drive_id in (select drive_id from described_devices) as is_described_differently,
        count(distinct wide_name) = 1 and drive_id not in (select drive_id from described_devices) as has_one_name,
        drive_id in (select drive_id from hosts where is_met) as is_of_several_hosts,
        drive_id in (select drive_id from at_once where is_at_once) as is_of_devices_at_once,
        count(distinct naming_host) = count(distinct host) as is_named_by_all_hosts
    from wide_claims
    group by drive_id
    having count(distinct device) > 1 or count(distinct host) > 1
)

select
    drive_id, device_count, host_count, wide_name_count, is_described_differently,
    not is_mapped
    and (
        is_of_several_names
        or (is_of_several_hosts and not (has_one_name and is_named_by_all_hosts))
        or (is_of_devices_at_once and not has_one_name)
    ) as is_shared,
    -- devices of one host that measured it at once are paths to it
    is_mapped or has_one_name as is_one_drive,
    -- devices of several hosts that measured it at once are one measurement, taken twice, where their counters agree over the day
    has_one_name and is_named_by_all_hosts as is_one_drive_of_hosts
from shared_names
