-- Where inventory says a drive is when it has no row of its own: never two places at once. Grain: drive_id, from_hour_utc.
with periods as (
    select drive_id, raid_group_id, role, slot, is_group_guessed, is_mapped, valid_from, from_hour_utc, to_hour_utc
    from {{ ref('int_drives__periods') }}
    where from_hour_utc < to_hour_utc
),

{{ disjoint_segments('periods', ['drive_id'], ['is_group_guessed', 'is_mapped']) }}
