-- Waits for an unplug and replugs under other rules: hits of total by RAID group. Grain: variant, id, kind, cluster_id.
with intervals as (
    select
        intervals.*,
        coalesce(drives.current_raid_group_id, intervals.drive_id) as cluster_id,
        case when intervals.severity = '1.5-2x' then 'mild' when intervals.severity is not null then 'slow' end as class,
        {{ severity('intervals.max_slowdown') }} as greatest_severity
    from {{ source('intermediate', 'int_slowdown_intervals') }} as intervals
    inner join {{ source('intermediate', 'int_drives') }} as drives on intervals.drive_id = drives.drive_id
),

episodes as (
    select *, coalesce(raid_group_id, drive_id || ' ' || cast(unplugged_at as string)) as cluster_id
    from {{ source('intermediate', 'int_unplug_episodes') }}
    where is_in_population
),

unplugged_drives as (
    select
        episodes.drive_id, episodes.kind,
        coalesce(drives.current_raid_group_id, episodes.drive_id) as cluster_id,
        max(case when episodes.is_replugged then 1 else 0 end) as replugged
    from episodes
    inner join {{ source('intermediate', 'int_drives') }} as drives on episodes.drive_id = drives.drive_id
    group by episodes.drive_id, episodes.kind, drives.current_raid_group_id
),

-- a drive's intervals of how far they went, not of how they began: the one that was answered soonest
waits_by_maximum as (
    select drive_id, kind, greatest_severity, cluster_id, min(wait_hours) as wait_hours
    from intervals
    where degree = 'slow'
    group by drive_id, kind, greatest_severity, cluster_id
),

ids as (
    select 'disk' as kind, 'F14-01' as slow, 'F14-03' as mild, 'F15-01' as replugged
    union all
    select 'ssd' as kind, 'F14-02' as slow, 'F14-04' as mild, 'F15-02' as replugged
),

counted_intervals as (
    select 'each interval' as variant, class as question, kind, raid_group_id as cluster_id,
        count(case when wait_hours <= 24 then 1 end) as hits, count(*) as total
    from intervals
    where class is not null
    group by class, kind, raid_group_id
    union all
    select 'each drive' as variant, 'replugged' as question, kind, cluster_id, sum(replugged) as hits, count(*) as total
    from unplugged_drives
    group by kind, cluster_id
    union all
    -- unplugged early enough for a replug to be seen
    select 'followed for 10 hours' as variant, 'replugged' as question, kind, cluster_id,
        count(case when is_replugged then 1 end) as hits, count(*) as total
    from episodes
    where unplugged_at + interval 10 hour <= (select max(last_hour_utc) + interval 1 hour from {{ source('intermediate', 'int_raid_groups') }})
    group by kind, cluster_id
)

select
    counted_intervals.variant,
    case counted_intervals.question when 'slow' then ids.slow when 'mild' then ids.mild else ids.replugged end as id,
    counted_intervals.kind, counted_intervals.cluster_id,
    cast(counted_intervals.hits as bigint) as hits,
    cast(counted_intervals.total as bigint) as total
from counted_intervals
inner join ids on counted_intervals.kind = ids.kind
union all
-- the paper's curves by severity are of disks
select
    'severity by maximum' as variant,
    'F11A-' || greatest_severity || '-24' as id,
    kind, cluster_id,
    count(case when wait_hours <= 24 then 1 end) as hits,
    count(*) as total
from waits_by_maximum
where kind = 'disk'
group by greatest_severity, kind, cluster_id
