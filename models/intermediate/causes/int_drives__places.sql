{{ config(meta={'made': 'each_build'}) }}
-- The places that drives share faults with, each by a name that is no other's: host and enclosure, where inventory names them.
-- Names of enclosures repeat from host to host: controllers count theirs from 0 or 252. One that several hosts of a known site name is one
-- that they share, unless two of them had drives in the same slot of it at the same time. Grain: drive_id, place_type, from_hour_utc.
with named_by_several as (
    select site, enclosure
    from {{ ref('int_drives') }}
    group by site, enclosure
    having min(host) <> max(host)
),

host_slots as (
    select
        drives.site, drives.enclosure, drives.slot, drives.host,
        min(drives.first_hour_utc) as first_hour_utc,
        max(drives.last_hour_utc) as last_hour_utc
    from {{ ref('int_drives') }} as drives
    inner join named_by_several as several on drives.site = several.site and drives.enclosure = several.enclosure
    where drives.host is not null
    group by drives.site, drives.enclosure, drives.slot, drives.host
),

slot_turns as (
    select
        *,
        first_hour_utc <= max(last_hour_utc) over (
            partition by site, enclosure, slot order by first_hour_utc rows between unbounded preceding and 1 preceding
        ) as is_taken
    from host_slots
),

shared_enclosures as (
    select site, enclosure
    from slot_turns
    group by site, enclosure
    having count(case when is_taken and slot is not null then 1 end) = 0
),

described_drives as (
    select drive_id, host, enclosure, site, since_hour_utc as from_hour_utc, to_hour_utc
    from {{ ref('int_drives__described') }}
    union all
    select
        drive_id, host, enclosure, site,
        timestamp '{{ var("beginning_of_time") }}' as from_hour_utc,
        timestamp '{{ var("end_of_time") }}' as to_hour_utc
    from {{ ref('int_drives') }}
    where drive_id not in (select drive_id from {{ ref('int_drives__described') }})
)

select
    drives.drive_id, drives.from_hour_utc, drives.to_hour_utc,
    drives.host is not null as has_host,
    'enclosure' as place_type,
    case
        when shared.enclosure is not null or (drives.host is null and drives.site is not null) then drives.site || '/' || drives.enclosure
        when drives.host is not null then drives.host || '/' || drives.enclosure
        else drives.enclosure
    end as place_id
from described_drives as drives
left join shared_enclosures as shared on drives.site = shared.site and drives.enclosure = shared.enclosure
where drives.enclosure is not null
union all
select drive_id, from_hour_utc, to_hour_utc, true as has_host, 'host' as place_type, host as place_id
from described_drives
where host is not null
