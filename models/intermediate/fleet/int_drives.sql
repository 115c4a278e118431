-- Every drive seen in any record: what its latest inventory period says of it, how its hours are grouped, and where it reported first and last.
-- Drive-hours are counted by kind, time zone, class and age (int_day_counts, int_clock_hours): a drive of another kind than before touches all
-- its hours. Grain: drive_id.
with spans as (
    select
        drive_id,
        min(first_hour_utc) as first_hour_utc,
        max(last_hour_utc) as last_hour_utc,
        max_by(raid_group_id, last_hour_utc) as last_raid_group_id,
        max_by(is_group_guessed, last_hour_utc) as last_is_group_guessed,
        max_by(declared_kind, last_hour_utc) as declared_kind
    from {{ ref('int_drive_days') }}
    group by drive_id
),

inventory as (
    select * from {{ ref('int_drives__periods') }} where is_latest
),

events as (
    select distinct drive_id from {{ ref('int_drive_events__identified') }}
)

select
    coalesce(inventory.drive_id, spans.drive_id, events.drive_id) as drive_id,
    -- without any period, what the delivery was said to be of
    coalesce(case when inventory.drive_id is null then spans.declared_kind else inventory.kind end, 'unknown') as kind,
    coalesce(
        inventory.peer_kind, {{ peer_kind('spans.declared_kind', 'cast(null as string)', 'coalesce(spans.drive_id, events.drive_id)') }}
    ) as peer_kind,
    coalesce(inventory.timezone, 'unknown') as timezone,
    -- what is unknown is left out
    concat_ws(
        ', ',
        'capacity ' || cast(inventory.capacity_bytes as string),
        'rpm ' || cast(inventory.rpm as string),
        'interface ' || inventory.interface
    ) as drive_class,
    inventory.vendor,
    inventory.model,
    inventory.firmware,
    inventory.flash_cell,
    inventory.capacity_bytes,
    inventory.rpm,
    inventory.interface,
    inventory.host,
    inventory.enclosure,
    inventory.site,
    inventory.slot,
    inventory.deployed_on,
    inventory.deployed_on_source,
    inventory.drive_id is not null as has_inventory,
    spans.first_hour_utc,
    spans.last_hour_utc,
    spans.declared_kind,
    coalesce(spans.last_raid_group_id, inventory.raid_group_id) as current_raid_group_id,
    case
        when coalesce(spans.last_raid_group_id, inventory.raid_group_id) is not null
            then coalesce(spans.last_is_group_guessed, inventory.is_group_guessed)
    end as is_group_guessed
from inventory
full join spans on inventory.drive_id = spans.drive_id
full join events on coalesce(inventory.drive_id, spans.drive_id) = events.drive_id
