{{ config(materialized='view') }}
{%- set decision_window_days = 28 %}{#- days of a RAID group before and after a replacement that are compared -#}
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

-- another serial in its slot; of several that stood there since, the first
successors as (
    select
        decisions.decision_seq,
        periods.from_hour_utc as replaced_at,
        periods.drive_id as successor_drive_id,
        row_number() over (partition by decisions.decision_seq order by periods.from_hour_utc, periods.drive_id) as place
    from decisions
    inner join {{ ref('int_drives__periods') }} as periods
        on decisions.raid_group_id = periods.raid_group_id
        and decisions.slot = periods.slot
        and decisions.drive_id <> periods.drive_id
        and periods.from_hour_utc >= decisions.hour_utc
),

-- or an event that reports the swap
reported_swaps as (
    select decisions.decision_seq, min(events.occurred_at) as replaced_at
    from decisions
    inner join {{ ref('int_drive_events__identified') }} as events
        on events.event_type = 'replacement'
        and events.occurred_at >= decisions.decided_at
        and (
            events.drive_id = decisions.drive_id
            or (events.raid_group_id = decisions.raid_group_id and events.slot = decisions.slot)
        )
    group by decisions.decision_seq
),

replacements as (
    select
        decisions.decision_seq,
        coalesce(gone.replaced_at, least(successors.replaced_at, reported_swaps.replaced_at)) as replaced_at,
        case when gone.drive_id is null then successors.successor_drive_id else gone.successor_drive_id end as successor_drive_id
    from decisions
    -- the swap may have happened before the decision was recorded
    left join {{ ref('int_drives__replaced') }} as gone
        on decisions.drive_id = gone.drive_id and gone.replaced_at < decisions.decided_at and decisions.superseded_at is null
    left join successors on decisions.decision_seq = successors.decision_seq and successors.place = 1
    left join reported_swaps on decisions.decision_seq = reported_swaps.decision_seq
),

judged as (
    select
        decisions.*,
        replacements.replaced_at, replacements.successor_drive_id,
        cast(coalesce(replacements.replaced_at, decisions.decided_at) as date) as divided_on,
        coalesce(decisions.until_utc <= publication.last_hour_utc + interval 1 hour, false) as is_past_until
    from decisions
    cross join {{ ref('publication') }} as publication
    left join replacements on decisions.decision_seq = replacements.decision_seq
        -- who decided otherwise before the drive went did not have it replaced by this decision
        and (decisions.superseded_at is null or replacements.replaced_at <= decisions.superseded_at)
),

-- whole days on either side of the day of the swap, without one of the decision; that day belongs to neither
days as (
    select
        judged.decision_seq,
        sum(case when days.day_utc < judged.divided_on then days.raid_hours else 0 end) as raid_hours_before,
        sum(case when days.day_utc < judged.divided_on then days.tail_hours else 0 end) as tail_hours_before,
        sum(case when days.day_utc > judged.divided_on then days.raid_hours else 0 end) as raid_hours_after,
        sum(case when days.day_utc > judged.divided_on then days.tail_hours else 0 end) as tail_hours_after
    from judged
    inner join {{ ref('int_raid_group_days') }} as days
        on judged.raid_group_id = days.raid_group_id
        and days.day_utc >= judged.divided_on - interval {{ decision_window_days }} day
        and days.day_utc <= judged.divided_on + interval {{ decision_window_days }} day
    group by judged.decision_seq
),

stated as (
    select
        *,
        case
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
    stated.open_state,
    cast(days.raid_hours_before as bigint) as raid_hours_before,
    cast(days.tail_hours_before as bigint) as tail_hours_before,
    cast(days.tail_hours_before as double) / nullif(days.raid_hours_before, 0) as tail_hour_ratio_before,
    cast(days.raid_hours_after as bigint) as raid_hours_after,
    cast(days.tail_hours_after as bigint) as tail_hours_after,
    cast(days.tail_hours_after as double) / nullif(days.raid_hours_after, 0) as tail_hour_ratio_after
from stated
left join days on stated.decision_seq = days.decision_seq
