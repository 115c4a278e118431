{{ config(meta={'by_week': {'column': 'week_utc'}}) }}
{%- set cost_load_factor = 2.0 %}{#- a RAID group's I/Os that fall or rise from one hour to the next by more than this did so with the load, not for a slow drive -#}
-- Cost of a slow drive to its RAID group in an ISO week (UTC): tail hours that were its own doing, and I/Os that were not served, of hours that
-- are evidence. Drives without such a slow hour in a week have no row. Grain: drive_id, raid_group_id, week_utc.
with slow_hours as (
    select
        drive_id, raid_group_id,
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        count(*) as slow_hours
    from {{ ref('int_drive_hours__evidence') }}
    group by drive_id, raid_group_id, cast(date_trunc('week', hour_utc) as timestamp)
),

tail_hours as (
    select
        hours.*,
        cast(date_trunc('week', hours.hour_utc) as timestamp) as week_utc,
        case when hours.tail_1_without_one is not null then hours.tail_1 end as judged_tail_1,
        -- a change of the load itself, not a slow drive: an application stopped or started
        not hours.io_count_after between hours.io_count_before / cast({{ cost_load_factor }} as double)
        and {{ cost_load_factor }} * hours.io_count_before as is_load
    from {{ ref('int_raid_hours__counterfactual') }} as hours
    inner join {{ ref('int_drive_hours__evidence') }} as slow
        on hours.slowest_drive_id = slow.drive_id and hours.raid_group_id = slow.raid_group_id and hours.hour_utc = slow.hour_utc
),

tails as (
    select
        slowest_drive_id as drive_id,
        raid_group_id, week_utc,
        count(*) as tail_hours,
        count(tail_1_without_one) as judged_tail_hours,
        count(case when is_caused_by_slowest then 1 end) as tail_hours_caused,
        {{ mean_of_group('judged_tail_1') }} as mean_tail_1,
        {{ mean_of_group('tail_1_without_one') }} as mean_tail_1_without,
        count(case when is_load then 1 end) as load_hours,
        count(case when not is_load then 1 end) as dropped_hours,
        cast(sum(case when not is_load then io_count_before end) as bigint) as io_count_before,
        cast(sum(case when not is_load then io_count_after end) as bigint) as io_count_after
    from tail_hours
    group by slowest_drive_id, raid_group_id, week_utc
),

-- change of a RAID group's I/Os from one stable hour to the next, by the same rule. Sums of whole numbers: their order leaves no trace
expected_costs as (
    select
        kind,
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        cast(sum(raid_io_count) as double)
        / nullif(cast(sum(cast(round(rio_degradation * raid_io_count) as decimal(38, 0))) as double), 0.0) as io_ratio
    from {{ ref('fct_raid_hours') }}
    where transition = 'stable_to_stable'
        and rio_degradation between 1.0 / {{ cost_load_factor }} and {{ cost_load_factor }}
    group by kind, cast(date_trunc('week', hour_utc) as timestamp)
)

select
    slow_hours.drive_id, slow_hours.raid_group_id, slow_hours.week_utc,
    drives.kind, drives.model,
    slow_hours.slow_hours,
    coalesce(tails.tail_hours, 0) as tail_hours,
    coalesce(tails.judged_tail_hours, 0) as judged_tail_hours,
    coalesce(tails.tail_hours_caused, 0) as tail_hours_caused,
    tails.mean_tail_1, tails.mean_tail_1_without,
    coalesce(tails.load_hours, 0) as load_hours,
    coalesce(tails.dropped_hours, 0) as dropped_hours,
    tails.io_count_before, tails.io_count_after,
    -- in whole I/Os, so that they add up
    cast(floor(tails.io_count_before * expected_costs.io_ratio - tails.io_count_after + 0.5) as double) as rio_lost
from slow_hours
left join tails
    on slow_hours.drive_id = tails.drive_id
    and slow_hours.raid_group_id = tails.raid_group_id
    and slow_hours.week_utc = tails.week_utc
inner join {{ ref('dim_drives') }} as drives on slow_hours.drive_id = drives.drive_id
left join {{ ref('int_raid_groups__kinds') }} as raid_groups on slow_hours.raid_group_id = raid_groups.raid_group_id
left join expected_costs on coalesce(raid_groups.kind, 'unknown') = expected_costs.kind and slow_hours.week_utc = expected_costs.week_utc
