-- Where inventory places a drive: in every hour the period with the latest valid_from counts (an open one is the oldest).
-- Grain: drive_id, raid_group_id, from_hour_utc.
with periods as (
    select drive_id, raid_group_id, named_raid_group_id, role, slot, is_group_guessed, is_mapped, valid_from, from_hour_utc, to_hour_utc
    from {{ ref('int_drives__periods') }}
    -- a description without a group places the drive nowhere
    where raid_group_id is not null
),

{{ stretches('periods', 'drive_id') }},

ranked_periods as (
    select
        *,
        row_number() over (partition by drive_id, stretch_from_utc order by valid_from desc nulls last) as row_rank,
        row_number() over (partition by drive_id, raid_group_id, stretch_from_utc order by valid_from desc nulls last) as group_rank
    from stretches
)

select
    drive_id, raid_group_id, named_raid_group_id, role, slot, is_group_guessed, is_mapped,
    row_rank = 1 as is_believed,
    valid_from,
    stretch_from_utc as from_hour_utc,
    stretch_to_utc as to_hour_utc
from ranked_periods
where group_rank = 1
