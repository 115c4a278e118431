-- The same within one RAID group, for drives that inventory names in several: a row's own group decides its role.
-- Grain: drive_id, raid_group_id, from_hour_utc.
with wanderers as (
    select drive_id
    from {{ ref('int_drives__periods') }}
    group by drive_id
    having count(distinct raid_group_id) > 1
),

periods as (
    select drive_id, raid_group_id, role, slot, valid_from, from_hour_utc, to_hour_utc
    from {{ ref('int_drives__periods') }}
    where from_hour_utc < to_hour_utc
        and drive_id in (select drive_id from wanderers)
),

{{ disjoint_segments('periods', ['drive_id', 'raid_group_id']) }}
