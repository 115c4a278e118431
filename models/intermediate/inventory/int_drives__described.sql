-- Description of each drive by inventory from an hour on. The end of a period alone changes no description. Grain: drive_id, from_hour_utc.
with periods as (
    select
        *,
        lead(from_hour_utc) over (partition by drive_id order by from_hour_utc asc, valid_from asc nulls first) as next_from_hour_utc,
        min(from_hour_utc) over (partition by drive_id) as first_from_hour_utc
    from {{ ref('int_drives__periods') }}
)

select
    drive_id, kind, model, deployed_on, raid_group_id, is_group_guessed, is_named_by_array, host, enclosure, site, from_hour_utc,
    -- where a drive was before anybody looked is where it was found
    case when from_hour_utc = first_from_hour_utc then timestamp '{{ var("beginning_of_time") }}' else from_hour_utc end as since_hour_utc,
    coalesce(next_from_hour_utc, timestamp '{{ var("end_of_time") }}') as to_hour_utc
from periods
-- of two periods that begin within an hour keep the later
where next_from_hour_utc is null or next_from_hour_utc > from_hour_utc
