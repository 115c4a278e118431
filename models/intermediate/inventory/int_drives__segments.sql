-- Where inventory places a drive: in every hour the period with the latest valid_from counts (an open one is the oldest).
-- Grain: drive_id, raid_group_id, from_hour_utc.
with periods as (
    select drive_id, raid_group_id, named_raid_group_id, role, slot, is_group_guessed, is_mapped, is_only, valid_from, from_hour_utc, to_hour_utc
    from {{ ref('int_drives__periods') }}
    -- a description without a group places the drive nowhere
    where from_hour_utc < to_hour_utc and raid_group_id is not null
),

-- most drives have one period, which is their segment
several as (
    select * from periods where not is_only
),

{{ stretches('several', 'drive_id') }},

ranked as (
    select
        several.*,
        stretches.hour_utc, stretches.next_hour_utc,
        row_number() over (
            partition by stretches.drive_id, stretches.hour_utc order by several.valid_from desc nulls last
        ) as place,
        row_number() over (
            partition by stretches.drive_id, several.raid_group_id, stretches.hour_utc order by several.valid_from desc nulls last
        ) as place_in_group
    from {{ periods_of_stretches('several', 'drive_id') }}
)

select drive_id, raid_group_id, named_raid_group_id, role, slot, is_group_guessed, is_mapped, true as is_believed, valid_from, from_hour_utc, to_hour_utc
from periods
where is_only
union all
select
    drive_id, raid_group_id, named_raid_group_id, role, slot, is_group_guessed, is_mapped,
    place = 1 as is_believed,
    valid_from,
    hour_utc as from_hour_utc,
    next_hour_utc as to_hour_utc
from ranked
where place_in_group = 1
