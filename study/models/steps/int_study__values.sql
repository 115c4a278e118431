-- Single values that percentiles are read from. Grain: one row per drive-hour, RAID-hour and tail, or RAID group.
with slow_hours as (
    select
        slow_hours.raid_group_id, slow_hours.hour_utc, slow_hours.slowdown,
        drives.kind,
        {{ age_year('drives.deployed_on', 'slow_hours.hour_utc') }} as age_year,
        row_number() over (
            partition by slow_hours.raid_group_id, slow_hours.hour_utc order by slow_hours.slowdown desc, slow_hours.drive_id asc nulls last
        ) as tail_rank
    from {{ source('intermediate', 'int_drive_hours__slow') }} as slow_hours
    inner join {{ source('intermediate', 'int_drives') }} as drives on slow_hours.drive_id = drives.drive_id
    where slow_hours.slowdown >= {{ var('study_edges')[0] }}
)

select 'slowdown' as measure, 'all' as class, kind, slowdown as value from slow_hours
union all
select 'slowdown' as measure, 'year ' || cast(age_year as string) as class, kind, slowdown as value
from slow_hours
where age_year is not null
union all
select
    'tail_' || cast(slow_hours.tail_rank as string) as measure,
    'all' as class,
    coalesce(kinds.kind, 'unknown') as kind,
    slow_hours.slowdown as value
from slow_hours
left join {{ source('intermediate', 'int_raid_groups__kinds') }} as kinds on slow_hours.raid_group_id = kinds.raid_group_id
where slow_hours.tail_rank <= 3
union all
select 'duration_days' as measure, 'all' as class, kind, duration_days as value
from {{ source('intermediate', 'int_raid_groups') }}
where duration_days is not null
