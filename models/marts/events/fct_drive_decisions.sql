{{ config(materialized='view') }}
-- Every decision on a drive: whether it still stands, whether the drive was replaced, and its RAID group's tails before and after.
-- Grain: decision_seq.
with decisions as (
    select
        decisions.*,
        -- a decision may name a drive that no record knows
        coalesce(drives.kind, 'unknown') as kind,
        coalesce(described.raid_group_id, drives.current_raid_group_id) as raid_group_id,
        coalesce(described.slot, drives.slot) as slot,
        coalesce(described.enclosure, drives.enclosure) as enclosure,
        drives.current_raid_group_id, drives.last_hour_utc
    from {{ ref('stg_raw__decisions') }} as decisions
    left join {{ ref('dim_drive_periods') }} as described
        on decisions.drive_id = described.drive_id
        and {{ is_valid_at('described', 'decisions.hour_utc') }}
    left join {{ ref('dim_drives') }} as drives on decisions.drive_id = drives.drive_id
),

-- drive that took a place: a slot, or the name under which a drive was first seen
taken_decisions as (
    select drive_id, raid_group_id, enclosure, slot, cast(null as string) as alias, valid_from_utc as taken_at
    from {{ ref('dim_drive_periods') }}
    union all
    select
        names.drive_id, drives.current_raid_group_id as raid_group_id, cast(null as string) as enclosure, cast(null as string) as slot, names.alias,
        drives.first_hour_utc as taken_at
    from {{ ref('int_names') }} as names
    inner join {{ ref('dim_drives') }} as drives on names.drive_id = drives.drive_id and names.from_utc < drives.first_hour_utc + interval 1 hour
    where names.alias like '%/%'
),

-- a drive that reports from another RAID group, where it is a new matter, since another one took its place in the old one
moved_drives as (
    select
        decisions.decision_seq,
        min(taken_decisions.taken_at) as replaced_at,
        min_by(taken_decisions.drive_id, cast(taken_decisions.taken_at as string) || ' ' || taken_decisions.drive_id) as successor_drive_id
    from decisions
    left join (select distinct drive_id, alias from {{ ref('int_names') }}) as own_names on decisions.drive_id = own_names.drive_id
    inner join taken_decisions
        on decisions.raid_group_id = taken_decisions.raid_group_id
        and ((decisions.slot = taken_decisions.slot and coalesce(decisions.enclosure = taken_decisions.enclosure, true)) or own_names.alias = taken_decisions.alias)
        and decisions.drive_id <> taken_decisions.drive_id
        and taken_decisions.taken_at >= decisions.hour_utc
        and taken_decisions.taken_at <= least(decisions.last_hour_utc, coalesce(decisions.superseded_at, decisions.last_hour_utc))
    where decisions.verdict <> 'retract' and decisions.raid_group_id <> decisions.current_raid_group_id
    group by decisions.decision_seq
),

judged_decisions as (
    select
        decisions.*,
        coalesce(moved_drives.replaced_at, replaced.replaced_at) as replaced_at,
        coalesce(moved_drives.successor_drive_id, replaced.successor_drive_id) as successor_drive_id,
        replaced.raid_hours_before, replaced.tail_hours_before,
        replaced.tail_hour_ratio_before, replaced.raid_hours_after, replaced.tail_hours_after, replaced.tail_hour_ratio_after,
        coalesce(decisions.until_utc <= publication.last_hour_utc + interval 1 hour, false) as is_past_until
    from decisions
    cross join {{ ref('publication') }} as publication
    left join moved_drives on decisions.decision_seq = moved_drives.decision_seq
    left join {{ ref('fct_drive_replacements') }} as replaced on {{ closes('replaced', 'decisions') }} and moved_drives.decision_seq is null
),

stated_decisions as (
    select
        *,
        case
            when verdict = 'retract' then 'retracted'
            when verdict = 'replace' then 'pending'
            when is_past_until then 'expired'
            else 'standing'
        end as open_state
    from judged_decisions
)

select
    decision_seq, drive_id, kind, raid_group_id, slot, verdict, decided_by,
    decided_at, note, until_utc, is_past_until, publication_id, ticket, superseded_at,
    replaced_at, successor_drive_id,
    case
        when replaced_at is not null then 'replaced'
        when superseded_at is not null then 'superseded'
        else open_state
    end as state,
    open_state, raid_hours_before, tail_hours_before, tail_hour_ratio_before, raid_hours_after,
    tail_hours_after, tail_hour_ratio_after
from stated_decisions
