{{ config(meta={'made': 'by_day'}) }}
-- Tails, width and throughput of each RAID-hour that has a row, valid or not. Grain: raid_group_id, hour_utc.
with tails as (
    select
        raid_group_id, hour_utc,
        count(slowdown) as reporting_drive_count,
        {{ largest('slowdown', 3) }} as longest,
        min(case when is_slowest then drive_id end) as slowest_drive_id,
        count(case when is_slow then 1 end) as slow_drive_count
    from {{ ref('int_drive_hours__compared') }}
    group by raid_group_id, hour_utc
),

-- peers that were peers the hour before, by the hours in which they were: most drives of a group in all
peers_again as (
    select day_utc, raid_group_id, peer_in & after_peer_in as again_in, count(*) as drive_count
    from {{ ref('int_drive_days') }}
    group by day_utc, raid_group_id, peer_in & after_peer_in
),

same_drives as (
    select
        raid_hours.raid_group_id, raid_hours.hour_utc,
        cast(sum(peers_again.drive_count) as bigint) as same_drive_count
    from {{ ref('int_raid_hours__medians') }} as raid_hours
    inner join peers_again
        on raid_hours.raid_group_id = peers_again.raid_group_id and cast(raid_hours.hour_utc as date) = peers_again.day_utc
    where {{ has_hour('peers_again.again_in', 'raid_hours.hour_utc') }}
    group by raid_hours.raid_group_id, raid_hours.hour_utc
)

select
    raid_hours.raid_group_id, raid_hours.hour_utc, raid_hours.is_valid, raid_hours.data_drive_count,
    tails.reporting_drive_count,
    case when raid_hours.is_valid then raid_hours.median_latency_us end as median_latency_us,
    {{ nth('tails.longest', 1) }} as tail_1,
    {{ nth('tails.longest', 2) }} as tail_2,
    {{ nth('tails.longest', 3) }} as tail_3,
    tails.slowest_drive_id, tails.slow_drive_count,
    raid_hours.slow_at,
    {{ nth('tails.longest', 1) }} >= raid_hours.slow_at as is_tail_hour,
    {{ nth('tails.longest', 1) }} >= raid_hours.mild_at as is_mild_tail_hour,
    raid_hours.raid_io_count,
    case
        when raid_hours.is_valid
            and raid_hours.previous_is_valid
            and same_drives.same_drive_count = raid_hours.covered_drive_count
            and same_drives.same_drive_count = raid_hours.previous_covered_drive_count
            then cast(raid_hours.previous_raid_io_count as double) / nullif(cast(raid_hours.raid_io_count as double), 0.0)
    end as rio_degradation,
    case
        when raid_hours.is_valid and raid_hours.previous_is_valid then
            case
                when raid_hours.previous_max_latency_us / raid_hours.previous_median_latency_us >= raid_hours.slow_at
                    then 'tail' else 'stable'
            end
            || '_to_'
            || case when {{ nth('tails.longest', 1) }} >= raid_hours.slow_at then 'tail' else 'stable' end
    end as transition,
    cast(raid_hours.hour_utc as date) as day_utc
from {{ ref('int_raid_hours__medians') }} as raid_hours
inner join tails on raid_hours.raid_group_id = tails.raid_group_id and raid_hours.hour_utc = tails.hour_utc
left join same_drives on raid_hours.raid_group_id = same_drives.raid_group_id and raid_hours.hour_utc = same_drives.hour_utc
