-- What if: how many tail hours are left when drives are replaced, or when reads skip the slowest drives? Grain: kind of the RAID groups.
-- A replaced drive counts as removed: the latencies that are left are compared with their own median.
-- Parameters, which `drivetail what-if` passes. $replaced: ids of the drives. $worst: or the number of drives of each RAID group, those that were the
-- slowest in most of its tail hours. $is_replaced: whether any drive is. $round: number of slowest drives that reads skip.
-- $since, $until: hours from and before (UTC), null for all.
with span as (
    -- a prune keeps tails, but not the latencies to judge a RAID-hour again
    select case when $is_replaced and coalesce(cast($since as timestamp) < pruned_before_utc, true) then pruned_before_utc end as pruned_before_utc
    from marts.publication
),

raid_hours as (
    select
        raid_hours.raid_group_id, raid_hours.hour_utc, raid_hours.kind, raid_hours.tail_1, raid_hours.tail_2, raid_hours.tail_3,
        raid_hours.is_tail_hour, raid_hours.slowest_drive_id
    from marts.fct_raid_hours as raid_hours
    cross join span
    where raid_hours.hour_utc >= coalesce(span.pruned_before_utc, raid_hours.hour_utc)
        and raid_hours.hour_utc >= coalesce(cast($since as timestamp), raid_hours.hour_utc)
        and raid_hours.hour_utc < coalesce(cast($until as timestamp), raid_hours.hour_utc + interval 1 hour)
),

ranked as (
    select
        raid_group_id,
        slowest_drive_id as drive_id,
        row_number() over (partition by raid_group_id order by count(*) desc, slowest_drive_id asc) as worst_rank
    from raid_hours
    where is_tail_hour
    group by raid_group_id, slowest_drive_id
),

replaced as (
    select drive_id from marts.dim_drives where array_contains($replaced, drive_id)
    union
    select drive_id from ranked where worst_rank <= $worst
),

drive_hours as (
    select drive_id, raid_group_id, hour_utc, latency_us
    from marts.fct_drive_hours
    -- where the median is 0 there is no slowdown, but may be one without the replaced drives
    where (slowdown is not null or exclusion_reason = 'zero_median')
        and hour_utc >= coalesce(cast($since as timestamp), hour_utc)
        and hour_utc < coalesce(cast($until as timestamp), hour_utc + interval 1 hour)
),

affected as (
    select drive_hours.raid_group_id, drive_hours.hour_utc, count(*) as replaced_count
    from drive_hours
    inner join replaced on drive_hours.drive_id = replaced.drive_id
    group by drive_hours.raid_group_id, drive_hours.hour_utc
),

others as (
    select
        drive_hours.raid_group_id, drive_hours.hour_utc, drive_hours.latency_us,
        row_number() over (partition by drive_hours.raid_group_id, drive_hours.hour_utc order by drive_hours.latency_us desc) as tail_rank
    from drive_hours
    inner join affected on drive_hours.raid_group_id = affected.raid_group_id and drive_hours.hour_utc = affected.hour_utc
    left join replaced on drive_hours.drive_id = replaced.drive_id
    where replaced.drive_id is null
),

judged as (
    select
        others.raid_group_id, others.hour_utc,
        max(case when others.tail_rank = 1 + $round then others.latency_us end) / median(others.latency_us) as tail
    from others
    cross join (select value from marts.thresholds where name = 'min_reporting_drives') as fewest
    group by others.raid_group_id, others.hour_utc
    having count(*) >= max(fewest.value) and median(others.latency_us) > 0
),

outcomes as (
    select
        raid_hours.kind,
        true as was_valid,
        raid_hours.is_tail_hour,
        case
            when affected.hour_utc is not null then judged.tail
            when $round = 0 then raid_hours.tail_1
            when $round = 1 then raid_hours.tail_2
            else raid_hours.tail_3
        end as tail
    from raid_hours
    left join affected on raid_hours.raid_group_id = affected.raid_group_id and raid_hours.hour_utc = affected.hour_utc
    left join judged on raid_hours.raid_group_id = judged.raid_group_id and raid_hours.hour_utc = judged.hour_utc
    union all
    select raid_groups.kind, false as was_valid, false as is_tail_hour, judged.tail
    from judged
    inner join marts.dim_raid_groups as raid_groups on judged.raid_group_id = raid_groups.raid_group_id
    left join raid_hours on judged.raid_group_id = raid_hours.raid_group_id and judged.hour_utc = raid_hours.hour_utc
    where raid_hours.hour_utc is null
),

replaced_drives as (
    select raid_hours.kind, count(distinct drive_hours.drive_id) as replaced_drive_count
    from drive_hours
    inner join replaced on drive_hours.drive_id = replaced.drive_id
    inner join raid_hours on drive_hours.raid_group_id = raid_hours.raid_group_id and drive_hours.hour_utc = raid_hours.hour_utc
    group by raid_hours.kind
),

totals as (
    select
        outcomes.kind,
        count(case when outcomes.was_valid then 1 end) as raid_hours,
        count(case when outcomes.is_tail_hour then 1 end) as tail_hours,
        count(outcomes.tail) as raid_hours_left,
        count(case when outcomes.tail >= slow.value then 1 end) as tail_hours_left,
        count(case when outcomes.is_tail_hour and outcomes.tail < slow.value then 1 end) as tail_hours_ended,
        count(case when not outcomes.is_tail_hour and outcomes.tail >= slow.value then 1 end) as tail_hours_begun,
        count(case when outcomes.is_tail_hour and outcomes.tail is null then 1 end) as tail_hours_unknown
    from outcomes
    inner join marts.thresholds as slow on slow.name = 'slow_threshold' and outcomes.kind = slow.kind
    group by outcomes.kind
)

select
    totals.kind,
    coalesce(replaced_drives.replaced_drive_count, 0) as replaced_drive_count,
    totals.raid_hours, totals.tail_hours,
    cast(totals.tail_hours as double) / nullif(totals.raid_hours, 0) as tail_ratio,
    totals.raid_hours_left, totals.tail_hours_left,
    cast(totals.tail_hours_left as double) / nullif(totals.raid_hours_left, 0) as tail_ratio_left,
    totals.tail_hours_ended, totals.tail_hours_begun, totals.tail_hours_unknown,
    span.pruned_before_utc
from totals
cross join span
left join replaced_drives on totals.kind = replaced_drives.kind
order by totals.kind asc
