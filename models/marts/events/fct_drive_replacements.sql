{{ config(materialized='view') }}
{%- set window_days = 28 %}{#- days of a RAID group before and after a replacement that are compared, at most -#}
-- Every drive that was replaced, decided or not: evidence, who decided it, and its RAID group's tails before and after. Grain: drive_id.
with replaced as (
    select
        replaced.*,
        drives.host, drives.device, drives.slot,
        drives.current_raid_group_id as raid_group_id,
        cast(coalesce(drives.last_hour_utc, replaced.replaced_at) as date) as left_on,
        cast(replaced.replaced_at as date) as replaced_on,
        cast(drives.first_hour_utc as date) as first_on,
        cast(publication.last_hour_utc as date) as last_on,
        -- the place is watched as long as its RAID group and the new drive report
        cast(
            least(raid_groups.last_hour_utc, coalesce(successors.last_hour_utc, raid_groups.last_hour_utc), publication.last_hour_utc) as date
        ) as watched_until
    from {{ ref('int_drives__replaced') }} as replaced
    inner join {{ ref('dim_drives') }} as drives on replaced.drive_id = drives.drive_id
    cross join {{ ref('publication') }} as publication
    left join {{ ref('dim_raid_groups') }} as raid_groups on drives.current_raid_group_id = raid_groups.raid_group_id
    left join {{ ref('dim_drives') }} as successors on replaced.successor_drive_id = successors.drive_id
),

-- as many days on either side as both have
windows as (
    select
        *,
        greatest(
            least({{ window_days }}, {{ days_between('replaced_on', 'watched_until') }}, {{ days_between('first_on', 'left_on') }}), 0
        ) as window_days,
        coalesce(
            {{ days_between('replaced_on', 'watched_until') }} < least({{ window_days }}, {{ days_between('replaced_on', 'last_on') }}), false
        ) as is_censored
    from replaced
),

-- whole days: those of the old drive's last row and of the swap belong to neither side
sides as (
    select
        windows.drive_id,
        days.day_utc > windows.replaced_on as is_after,
        cast(count(distinct case when days.raid_hours > 0 then days.day_utc end) as double) as day_count,
        cast(sum(days.raid_hours) as bigint) as raid_hours,
        cast(sum(days.tail_hours) as bigint) as tail_hours,
        cast(sum(days.tail_hours) as double) / nullif(sum(days.raid_hours), 0) as ratio
    from windows
    inner join {{ ref('int_raid_group_days') }} as days
        on windows.raid_group_id = days.raid_group_id
        and (
            (days.day_utc < windows.left_on and days.day_utc >= windows.left_on - windows.window_days * interval 1 day)
            or (days.day_utc > windows.replaced_on and days.day_utc <= windows.replaced_on + windows.window_days * interval 1 day)
        )
    group by windows.drive_id, days.day_utc > windows.replaced_on
),

-- hours of a day are alike, so a day counts as one observation
limited_sides as (
    select
        *,
        {{ wilson_low('ratio', 'day_count') }} as low,
        {{ wilson_high('ratio', 'day_count') }} as high
    from sides
    where raid_hours > 0
),

compared_windows as (
    select
        windows.*,
        coalesce(earlier.raid_hours, 0) as raid_hours_before,
        coalesce(earlier.tail_hours, 0) as tail_hours_before,
        earlier.ratio as ratio_before,
        coalesce(later.raid_hours, 0) as raid_hours_after,
        coalesce(later.tail_hours, 0) as tail_hours_after,
        later.ratio as ratio_after,
        later.ratio - earlier.ratio as change,
        -- Newcombe's interval of a difference of two shares
        sqrt(power(later.ratio - later.low, 2) + power(earlier.high - earlier.ratio, 2)) as reach_down,
        sqrt(power(later.high - later.ratio, 2) + power(earlier.ratio - earlier.low, 2)) as reach_up
    from windows
    left join limited_sides as earlier on windows.drive_id = earlier.drive_id and not earlier.is_after
    left join limited_sides as later on windows.drive_id = later.drive_id and later.is_after
),

decided_drives as (
    select replaced.drive_id, max_by(decisions.decided_by, decisions.decision_seq) as decided_by
    from replaced
    inner join {{ ref('stg_raw__decisions') }} as decisions on {{ closes('replaced', 'decisions') }}
    where decisions.verdict = 'replace'
    group by replaced.drive_id
)

select
    compared_windows.drive_id, compared_windows.successor_drive_id, compared_windows.replaced_at, compared_windows.seen_by, compared_windows.host, compared_windows.device, compared_windows.slot,
    compared_windows.raid_group_id, decided_drives.decided_by,
    cast(compared_windows.window_days as bigint) as window_days,
    compared_windows.is_censored, compared_windows.raid_hours_before, compared_windows.tail_hours_before,
    compared_windows.ratio_before as tail_hour_ratio_before,
    compared_windows.raid_hours_after, compared_windows.tail_hours_after,
    compared_windows.ratio_after as tail_hour_ratio_after,
    compared_windows.change as tail_hour_ratio_change,
    compared_windows.change - compared_windows.reach_down as tail_hour_ratio_change_low,
    compared_windows.change + compared_windows.reach_up as tail_hour_ratio_change_high,
    case
        when compared_windows.change + compared_windows.reach_up < 0 then 'better'
        when compared_windows.change - compared_windows.reach_down > 0 then 'worse'
        else 'open'
    end as outcome
from compared_windows
left join decided_drives on compared_windows.drive_id = decided_drives.drive_id
