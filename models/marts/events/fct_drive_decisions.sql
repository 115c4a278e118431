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
taken as (
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
moved as (
    select
        decisions.decision_seq,
        min(taken.taken_at) as replaced_at,
        min_by(taken.drive_id, cast(taken.taken_at as string) || ' ' || taken.drive_id) as successor_drive_id
    from decisions
    left join (select distinct drive_id, alias from {{ ref('int_names') }}) as own_names on decisions.drive_id = own_names.drive_id
    inner join taken
        on decisions.raid_group_id = taken.raid_group_id
        and ((decisions.slot = taken.slot and coalesce(decisions.enclosure = taken.enclosure, true)) or own_names.alias = taken.alias)
        and decisions.drive_id <> taken.drive_id
        and taken.taken_at >= decisions.hour_utc
        and taken.taken_at <= least(decisions.last_hour_utc, coalesce(decisions.superseded_at, decisions.last_hour_utc))
    where decisions.verdict <> 'retract' and decisions.raid_group_id <> decisions.current_raid_group_id
    group by decisions.decision_seq
),

judged as (
    select
        decisions.*,
        coalesce(moved.replaced_at, replaced.replaced_at) as replaced_at,
        coalesce(moved.successor_drive_id, replaced.successor_drive_id) as successor_drive_id,
        replaced.raid_hours_before, replaced.tail_hours_before,
        replaced.tail_hour_ratio_before, replaced.raid_hours_after, replaced.tail_hours_after, replaced.tail_hour_ratio_after,
        coalesce(decisions.until_utc <= publication.last_hour_utc + interval 1 hour, false) as is_past_until
    from decisions
    cross join {{ ref('publication') }} as publication
    left join moved on decisions.decision_seq = moved.decision_seq
    left join {{ ref('fct_drive_replacements') }} as replaced on {{ closes('replaced', 'decisions') }} and moved.decision_seq is null
),

stated as (
    select
        *,
        case
            when verdict = 'retract' then 'retracted'
            when verdict = 'replace' then 'pending'
            when is_past_until then 'expired'
            else 'standing'
        end as open_state
    from judged
)

select
    stated.decision_seq, stated.drive_id, stated.kind, stated.raid_group_id, stated.slot, stated.verdict, stated.decided_by,
    stated.decided_at, stated.note, stated.until_utc, stated.is_past_until, stated.publication_id, stated.ticket, stated.superseded_at,
    stated.replaced_at, stated.successor_drive_id,
    case
        when stated.replaced_at is not null then 'replaced'
        when stated.superseded_at is not null then 'superseded'
        else stated.open_state
    end as state,
    stated.open_state, stated.raid_hours_before, stated.tail_hours_before, stated.tail_hour_ratio_before, stated.raid_hours_after,
    stated.tail_hours_after, stated.tail_hour_ratio_after
from stated
