-- What if reads went around slow drives by a policy of ToleRAID? Exact, from the tails of each RAID-hour; of a pruned hour too. Grain: kind, policy.
-- A RAID-hour stands for its requests: each takes what the hour's slowdowns say, and a parity is as fast as the median. `adaptive` in steady
-- state: the first requests of a slow hour, before a drive counts as offending, are neglected.
-- Parameters, which `drivetail what-if` passes. $policies: names. $st: slowdown from which a drive is late, null for the threshold of its kind. $since, $until: hours (UTC), null for all.
with raid_hours as (
    select
        kind, raid_group_id, tail_1, tail_2, tail_3, is_tail_hour, slow_at,
        coalesce(cast($st as double), slow_at) as late_at,
        data_drive_count, raid_io_count,
        -- at most two drives can be masked, so the two largest say how many are late
        case when tail_2 >= coalesce(cast($st as double), slow_at) then 2 when tail_1 >= coalesce(cast($st as double), slow_at) then 1 else 0 end as late_count
    from marts.fct_raid_hours
    where hour_utc >= coalesce(cast($since as timestamp), hour_utc)
        and hour_utc < coalesce(cast($until as timestamp), hour_utc + interval 1 hour)
),

served as (
    select
        raid_hours.*,
        policies.policy,
        case
            when policies.policy = 'proactive1' or policies.policy = 'adaptive' and late_count = 1 then greatest(tail_2, 1)
            when policies.policy = 'proactive2' or policies.policy = 'adaptive' and late_count = 2 then greatest(tail_3, 1)
            -- a rescued block is there at ST + 1
            when policies.policy = 'reactive' and late_count > 0 then greatest(case late_count when 1 then tail_2 else tail_3 end, least(tail_1, late_at + 1))
            else tail_1
        end as completion,
        case policies.policy when 'none' then 0 when 'proactive1' then 1 when 'proactive2' then 2 else late_count end as extra_reads
    from raid_hours
    cross join (
        select 'none' as policy
        union all
        select 'reactive'
        union all
        select 'proactive1'
        union all
        select 'proactive2'
        union all
        select 'adaptive'
    ) as policies
    where array_contains($policies, policies.policy)
),

ranked as (
    select
        *,
        row_number() over (partition by kind, policy order by completion) as place,
        count(*) over (partition by kind, policy) as places
    from served
),

group_totals as (
    select
        served.kind, served.policy, served.raid_group_id,
        count(case when served.is_tail_hour then 1 end) as tail_hours,
        count(case when served.is_tail_hour and served.completion < served.slow_at then 1 end) as tail_hours_avoided
    from served
    group by served.kind, served.policy, served.raid_group_id
),

resampled as (
    select
        group_totals.kind, group_totals.policy,
        draws.replicate,
        cast(sum(draws.draw_count * group_totals.tail_hours_avoided) as double)
        / nullif(sum(draws.draw_count * group_totals.tail_hours), 0) as avoided_ratio
    from group_totals
    inner join intermediate.int_raid_groups__draws as draws on group_totals.raid_group_id = draws.raid_group_id
    where group_totals.tail_hours > 0
    group by group_totals.kind, group_totals.policy, draws.replicate
),

ends as (
    select
        kind, policy,
        percentile_cont(0.025) within group (order by avoided_ratio) as low,
        percentile_cont(0.975) within group (order by avoided_ratio) as high
    from resampled
    group by kind, policy
),

totals as (
    select
        ranked.kind, ranked.policy,
        count(*) as raid_hours,
        count(case when ranked.completion >= ranked.slow_at then 1 end) as tail_hours,
        count(case when ranked.is_tail_hour then 1 end) as tail_hours_now,
        count(case when ranked.is_tail_hour and ranked.completion < ranked.slow_at then 1 end) as tail_hours_avoided,
        count(case when ranked.completion > 3 then 1 end) as hours_above_3,
        count(case when ranked.completion > 4 then 1 end) as hours_above_4,
        avg(case when ranked.completion >= ranked.slow_at then ranked.completion - 1 end) as mean_excess,
        min(case when ranked.place >= 0.99 * ranked.places then ranked.completion end) as p99,
        min(case when ranked.place >= 0.999 * ranked.places then ranked.completion end) as p999,
        -- weighted by the I/Os where they are counted, else by hours
        coalesce(
            sum(ranked.raid_io_count * (cast(ranked.extra_reads as double) / ranked.data_drive_count))
            / nullif(sum(ranked.raid_io_count), 0),
            avg(cast(ranked.extra_reads as double) / ranked.data_drive_count)
        ) as extra_read_ratio
    from ranked
    group by ranked.kind, ranked.policy
)

select
    totals.kind, totals.policy, totals.raid_hours, totals.tail_hours,
    cast(totals.tail_hours as double) / nullif(totals.raid_hours, 0) as tail_ratio,
    totals.hours_above_3, totals.hours_above_4, totals.mean_excess, totals.p99, totals.p999, totals.extra_read_ratio, totals.tail_hours_now,
    totals.tail_hours_avoided,
    -- a bootstrap of 2 of 2 hours gives 2 to 2: of few hours the interval is exact
    coalesce(limits.low, ends.low) * totals.tail_hours_now as avoided_low,
    coalesce(limits.high, ends.high) * totals.tail_hours_now as avoided_high
from totals
left join seeds.share_limits as limits on totals.tail_hours_now = limits.trial_count and totals.tail_hours_avoided = limits.event_count
left join ends on totals.kind = ends.kind and totals.policy = ends.policy
order by
    totals.kind asc,
    case totals.policy when 'none' then 0 when 'reactive' then 1 when 'proactive1' then 2 when 'proactive2' then 3 else 4 end asc
