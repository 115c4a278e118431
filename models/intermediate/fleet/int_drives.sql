-- Every drive seen in any record. Grain: drive_id.
with drives as (
    select drive_id from {{ ref('int_drives__spans') }}
    union
    select drive_id from {{ ref('int_drives__attributes') }}
    union
    select drive_id from {{ ref('int_drive_events__identified') }}
)

select
    drives.drive_id,
    coalesce(kinds.kind, 'unknown') as kind,
    attributes.vendor,
    attributes.model,
    attributes.firmware,
    attributes.flash_cell,
    attributes.capacity_bytes,
    attributes.rpm,
    attributes.interface,
    attributes.host,
    attributes.enclosure,
    attributes.site,
    attributes.slot,
    attributes.deployed_on,
    attributes.deployed_on_source,
    spans.first_hour_utc,
    spans.last_hour_utc,
    coalesce(spans.last_raid_group_id, attributes.raid_group_id) as current_raid_group_id,
    case
        when coalesce(spans.last_raid_group_id, attributes.raid_group_id) is not null
            then coalesce(spans.last_is_group_guessed, attributes.is_group_guessed)
    end as is_group_guessed
from drives
left join {{ ref('int_drives__attributes') }} as attributes on drives.drive_id = attributes.drive_id
left join {{ ref('int_drives__kinds') }} as kinds on drives.drive_id = kinds.drive_id
left join {{ ref('int_drives__spans') }} as spans on drives.drive_id = spans.drive_id
