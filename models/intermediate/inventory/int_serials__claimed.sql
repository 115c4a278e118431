-- Serial numbers that several devices go by, and whether these are one drive. Grain: drive_id.
-- A serial that hosts claim by turns, or two devices of a host at once without one world wide name, names none of them: machines make serials up.
-- An operator's mapping says which drive a device is, whoever else claims its serial.
with devices as (
    select
        source,
        drive_id,
        host || regexp_extract(alias, '(/.*)$', 1) as device,
        host,
        valid_from,
        coalesce(valid_until, valid_from) as last_at
    from {{ ref('int_aliases__claimed') }}
    where is_device and not is_controller and not is_derived
),

several as (
    select
        drive_id,
        count(distinct device) as device_count,
        count(distinct host) as host_count,
        max(case when source = 'mapping' then 1 else 0 end) = 1 as is_mapped
    from devices
    group by drive_id
    having count(distinct device) > 1
),

hosts as (
    select
        devices.drive_id,
        devices.host,
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

at_once as (
    select distinct drive_id
    from (
        select source, drive_id, date_trunc('hour', valid_from) as hour_utc, count(distinct device) as device_count
        from devices
        group by source, drive_id, host, date_trunc('hour', valid_from)
    ) as looks
    where device_count > 1 and source <> 'mapping'
),

wide_names as (
    select drive_id, count(distinct alias) as wide_name_count
    from {{ ref('int_aliases__claimed') }}
    where alias like 'wwn:%'
    group by drive_id
),

judged as (
    select
        several.drive_id,
        several.device_count,
        several.host_count,
        coalesce(wide_names.wide_name_count, 0) as wide_name_count,
        several.is_mapped,
        met.drive_id is not null as is_of_several_hosts,
        at_once.drive_id is not null and coalesce(wide_names.wide_name_count, 0) <> 1 as is_of_several_devices
    from several
    left join met on several.drive_id = met.drive_id
    left join at_once on several.drive_id = at_once.drive_id
    left join wide_names on several.drive_id = wide_names.drive_id
)

select
    drive_id,
    device_count,
    host_count,
    wide_name_count,
    not is_mapped and (is_of_several_hosts or is_of_several_devices) as is_shared,
    -- two devices of one host that measured it in one hour are paths to it
    is_mapped or wide_name_count = 1 as is_one_drive
from judged
