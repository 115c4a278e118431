{{ config(meta={'made': 'each_build'}) }}
-- Whether each drive still serves data where it was, has another role now, or is gone. Grain: drive_id.
-- where inventory had it last; a drive that no inventory places serves data where it reports
with places as (
    select
        segments.drive_id,
        max_by(segments.role, segments.from_hour_utc) as role,
        max(segments.to_hour_utc) as to_hour_utc
    from {{ ref('int_drives__segments') }} as segments
    inner join {{ ref('stg_raw__publication') }} as publication on segments.from_hour_utc <= publication.last_hour_utc
    where segments.is_believed
    group by segments.drive_id
),

unplugs as (
    select drive_id, max(hour_utc) as hour_utc
    from (
        select *, max(case when event_type = 'replug' then occurred_at end) over (partition by drive_id) as replugged_at
        from {{ ref('int_drive_events__identified') }}
        where event_type in ('unplug', 'replug')
    ) as events
    where event_type = 'unplug' and coalesce(occurred_at > replugged_at, true)
    group by drive_id
),

-- current or last drive of a name; an unseen device goes by the name itself
bearers as (
    select alias, drive_id from {{ ref('int_names') }} where drive_id is not null
    union
    select alias, alias as drive_id from {{ ref('int_names') }}
),

-- the same device goes on by another name, or another one has its place since
followed_drives as (
    select distinct drives.drive_id
    from {{ ref('int_drives') }} as drives
    cross join {{ ref('stg_raw__publication') }} as publication
    inner join bearers as own on drives.drive_id = own.drive_id
    inner join bearers as next on own.alias = next.alias and own.drive_id <> next.drive_id
    inner join {{ ref('int_drives') }} as others on next.drive_id = others.drive_id and others.last_hour_utc > drives.last_hour_utc
    where own.alias = own.drive_id
        or others.first_hour_utc >= drives.last_hour_utc
        or (own.alias = others.drive_id and others.last_hour_utc > publication.last_hour_utc - interval {{ var('silent_hours') }} hour)
),

standing_drives as (
    select
        drives.drive_id, drives.has_inventory, drives.last_hour_utc,
        case
            when replaced.drive_id is not null then 'replaced'
            when places.drive_id is null then 'data'
            when places.to_hour_utc > publication.last_hour_utc then case when places.role = 'data' then 'data' else 'other role' end
            -- a drive that reports after the hour in which its period ended has not gone
            when places.to_hour_utc < drives.last_hour_utc then 'data'
            else 'gone'
        end as standing,
        places.role, places.to_hour_utc, replaced.replaced_at,
        publication.last_hour_utc as fleet_last_hour_utc
    from {{ ref('int_drives') }} as drives
    cross join {{ ref('stg_raw__publication') }} as publication
    left join places on drives.drive_id = places.drive_id
    left join {{ ref('int_drives__replaced') }} as replaced on drives.drive_id = replaced.drive_id
)

select
    standing_drives.drive_id, standing_drives.standing, standing_drives.role, standing_drives.replaced_at, standing_drives.last_hour_utc,
    case standing_drives.standing when 'replaced' then standing_drives.replaced_at when 'gone' then standing_drives.to_hour_utc end as left_at,
    standing_drives.standing in ('data', 'other role')
    and coalesce(standing_drives.role <> 'spare', true)
    and followed_drives.drive_id is null
    and coalesce(unplugs.hour_utc < standing_drives.last_hour_utc, true)
    -- one that only its own rows ever named is not expected for ever
    and (
        standing_drives.has_inventory
        or coalesce(standing_drives.last_hour_utc > standing_drives.fleet_last_hour_utc - interval {{ var('status_window_days') }} day, standing_drives.last_hour_utc is not null)
    ) as is_expected
from standing_drives
left join unplugs on standing_drives.drive_id = unplugs.drive_id
left join followed_drives on standing_drives.drive_id = followed_drives.drive_id
