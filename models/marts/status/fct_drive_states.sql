{{ config(materialized='view') }}
-- State of each drive that is expected, and where it stands: the map of the fleet. Grain: drive_id.
with latest_boundary as (
    select max(boundary_utc) as boundary_utc from {{ ref('int_boundaries') }}
),

slow_drives as (
    select drive_weeks.drive_id, drive_weeks.slow_days_14d
    from {{ ref('int_drive_weeks') }} as drive_weeks
    inner join latest_boundary on drive_weeks.boundary_utc = latest_boundary.boundary_utc
),

states as (
    select
        judged.drive_id, judged.name, judged.host, drives.enclosure,
        coalesce(judged.host, drives.enclosure) as place,
        case
            when actions.action <> 'none' then actions.action
            when judged.unjudged_reason <> 'kind unknown' then 'not judged'
            else 'well'
        end as state,
        judged.unjudged_reason,
        slow_drives.slow_days_14d
    from {{ ref('fct_judged_drives') }} as judged
    inner join {{ ref('dim_drives') }} as drives on judged.drive_id = drives.drive_id
    left join {{ ref('drive_actions') }} as actions on judged.drive_id = actions.drive_id
    left join slow_drives on judged.drive_id = slow_drives.drive_id
),

noted_states as (
    select
        *,
        case state when 'replace' then 1 when 'check path' then 2 when 'inspect' then 3 when 'watch' then 4 else 5 end as urgency,
        state not in ('well', 'not judged') or coalesce(unjudged_reason = 'silent', false) as is_noted
    from states
),

places as (
    select
        place,
        count(*) as place_drives,
        row_number() over (order by min(urgency) asc, count(case when is_noted then 1 end) desc, place asc nulls last) as place_rank
    from noted_states
    group by place
)

select
    noted_states.drive_id, noted_states.name, noted_states.host, noted_states.enclosure, noted_states.place, places.place_drives,
    cast(places.place_rank as bigint) as place_rank,
    noted_states.state, noted_states.unjudged_reason,
    case when noted_states.state <> 'not judged' then coalesce(noted_states.slow_days_14d, 0) end as slow_days_14d,
    noted_states.is_noted,
    count(*) over (partition by noted_states.state) as state_drives,
    count(*) over (partition by noted_states.unjudged_reason) as reason_drives
from noted_states
inner join places on noted_states.place is not distinct from places.place
