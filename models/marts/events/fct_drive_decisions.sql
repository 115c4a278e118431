{{ config(materialized='view') }}
-- Every decision on a drive: whether it still stands, whether the drive was replaced, and its RAID group's tails before and after.
-- Grain: decision_seq.
with decisions as (
    select
        decisions.*,
        -- a decision may name a drive that no record knows
        coalesce(drives.kind, 'unknown') as kind,
        coalesce(described.raid_group_id, drives.current_raid_group_id) as raid_group_id,
        coalesce(described.slot, drives.slot) as slot
    from {{ ref('stg_raw__decisions') }} as decisions
    left join {{ ref('dim_drive_periods') }} as described
        on decisions.drive_id = described.drive_id
        and {{ is_valid_at('described', 'decisions.hour_utc') }}
    left join {{ ref('dim_drives') }} as drives on decisions.drive_id = drives.drive_id
),

judged as (
    select
        decisions.*,
        replaced.replaced_at, replaced.successor_drive_id, replaced.raid_hours_before, replaced.tail_hours_before,
        replaced.tail_hour_ratio_before, replaced.raid_hours_after, replaced.tail_hours_after, replaced.tail_hour_ratio_after,
        coalesce(decisions.until_utc <= publication.last_hour_utc + interval 1 hour, false) as is_past_until
    from decisions
    cross join {{ ref('publication') }} as publication
    left join {{ ref('fct_drive_replacements') }} as replaced on {{ closes('replaced', 'decisions') }}
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
