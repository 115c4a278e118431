{{ config(materialized='view') }}
-- Drives by what to do with each, and why, as of the last week boundary; of drives that were slow in the 28 days before or caused tail hours.
-- Grain: drive_id.
-- the boundary after the last week that is over and has a slowdown: RAID groups' days say so at a hundredth of the cost of drives' weeks
with weeks as (
    select cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp) + interval 7 day as boundary_utc, publication.last_hour_utc
    from {{ ref('int_raid_group_days') }} as days
    cross join {{ ref('publication') }} as publication
    where days.raid_hours > 0
),

latest as (
    select max(boundary_utc) as boundary_utc from weeks where boundary_utc <= last_hour_utc + interval 1 hour
),

decisions as (
    select
        drive_id,
        max_by(verdict, decision_seq) as decision,
        max_by(decided_by, decision_seq) as decided_by,
        max_by(decided_at, decision_seq) as decided_at
    from {{ ref('fct_drive_decisions') }}
    where state in ('pending', 'standing')
    group by drive_id
),

-- where inventory had it last; a drive that no inventory places serves data where it reports
places as (
    select
        segments.drive_id,
        max_by(segments.role, segments.from_hour_utc) as role,
        max(segments.to_hour_utc) as to_hour_utc
    from {{ ref('int_drives__segments') }} as segments
    inner join {{ ref('publication') }} as publication on segments.from_hour_utc <= publication.last_hour_utc
    where segments.is_believed
    group by segments.drive_id
),

judged as (
    select
        judged.*,
        decisions.decision,
        decisions.decided_by,
        decisions.decided_at,
        drives.host,
        drives.enclosure,
        drives.slot,
        drives.capacity_bytes,
        {{ rounded_text('judged.expected_tail_hours', 1) }} as expected,
        {{ rounded_text('judged.cost_tail_hours', 1) }} as cost
    from {{ ref('int_drive_weeks__judged') }} as judged
    inner join latest on judged.boundary_utc = latest.boundary_utc
    left join {{ ref('dim_drives') }} as drives on judged.drive_id = drives.drive_id
    left join decisions on judged.drive_id = decisions.drive_id
    left join places on judged.drive_id = places.drive_id
    left join {{ ref('int_drives__replaced') }} as replaced on judged.drive_id = replaced.drive_id
    cross join {{ ref('publication') }} as publication
    where replaced.drive_id is null
        -- a drive that reports after the hour in which its period ended has not gone
        and coalesce(
            case when places.to_hour_utc > publication.last_hour_utc then places.role = 'data' else places.to_hour_utc < drives.last_hour_utc end,
            true
        )
),

worded as (
    select
        *,
        case
            when replace_rule = 'expectation'
                then 'At least ' || {{ rounded_text('expected_low', 1) }} || ' tail hours are expected in 28 days; a replacement costs ' || cost || '.'
            when replace_rule = 'evidence'
                then 'It caused ' || {{ counted_noun('tail_hours_caused_28d', 'tail hour') }} || ' in 28 days, '
                    || {{ to_tenths('tail_hours_caused_28d / cost_tail_hours') }} || ' times what a replacement costs (' || cost || '), in '
                    || cast(tail_weeks_28d as string) || ' of 4 weeks'
                    || case
                        when recur_hours <= {{ var('replace_evidence_recur_hours') }} then ', and was slow again within a day of its last replug.'
                        else '.'
                    end
            when verdict = 'check path'
                then 'It shared ' || cast(together_hours_28d as string) || ' of ' || {{ counted_noun('slow_hours_28d', 'slow hour') }}
                    || ' with other drives of its RAID group or host, so another drive may be slow there too.'
            when not is_slow_28d then 'It had no slow hour in 28 days.'
            when expected_low is null
                then expected || ' tail hours are expected in 28 days and a replacement costs ' || cost
                    || ', but too few RAID groups have an outcome yet to say how sure that is.'
            else expected || ' tail hours are expected in 28 days, but perhaps only ' || {{ rounded_text('expected_low', 1) }}
                || '; a replacement costs ' || cost || '.'
        end as why,
        case
            when verdict = 'replace' then ''
            when not is_slow_28d then ' Its next slow hour brings it back onto the list.'
            when is_shared then ' Replace it once most of its slow hours are its own.'
            when verdict = 'leave' then ' It is watched from {{ var("candidate_watch_hours") }} on.'
            when not is_enough
                then ' Replace it once it causes ' || {{ rounded_text(var('replace_evidence_cost_ratio') ~ ' * cost_tail_hours', 1) }}
                    || ' in 28 days; now ' || cast(tail_hours_caused_28d as string) || '.'
            when not is_recent
                then ' Replace it if it causes more; the last was on ' || cast(cast(latest_tail_hour_utc as date) as string) || '.'
            else ' Replace it once it causes some in {{ var("replace_evidence_weeks") }} weeks of 4; now in ' || cast(tail_weeks_28d as string) || '.'
        end as what_is_missing
    from judged
)

select
    worded.drive_id,
    worded.boundary_utc,
    cast(row_number() over (
        order by
            case worded.verdict when 'replace' then 1 when 'check path' then 2 when 'watch' then 3 else 4 end asc,
            -- the ranking that foretells slow drives best (candidate_forecasts)
            worded.slow_hours_28d desc,
            worded.expected_tail_hours - worded.cost_tail_hours desc,
            worded.drive_id asc
    ) as bigint) as candidate_rank,
    worded.kind,
    worded.raid_group_id,
    worded.host,
    worded.enclosure,
    worded.slot,
    worded.model,
    worded.capacity_bytes,
    worded.age_year,
    worded.expected_tail_hours,
    worded.expected_low,
    worded.expected_high,
    worded.tail_hours_low,
    worded.tail_hours_high,
    worded.rebuild_hours,
    worded.cost_tail_hours,
    worded.expected_tail_hours - worded.cost_tail_hours as net_tail_hours,
    worded.verdict,
    worded.replace_rule,
    worded.why || worded.what_is_missing as verdict_reason,
    worded.tail_hours_caused_28d,
    worded.tail_weeks_28d,
    worded.latest_tail_hour_utc,
    worded.slow_hours_28d,
    worded.recurrence_count_28d,
    worded.together_hours_28d,
    worded.chronic_hours_28d,
    worded.drive_hours_28d,
    worded.unplug_count,
    worded.wait_hours,
    worded.recur_hours,
    worded.training_drive_weeks,
    worded.outcome_count,
    worded.decision,
    worded.decided_by,
    worded.decided_at
from worded
