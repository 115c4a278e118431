{{ config(meta={'made': 'each_build'}) }}
-- Drives of one place that were slow in the same hours of the last four weeks: one incident. Grain: drive_id.
with slow_hours as (
    select slow.drive_id, slow.raid_group_id, slow.hour_utc
    from {{ ref('int_drive_hours__slow') }} as slow
    inner join {{ ref('stg_raw__publication') }} as publication on slow.hour_utc > publication.last_hour_utc - interval 28 day
    where slow.is_slow
),

slow_counts as (
    select drive_id, count(*) as slow_hours from slow_hours
    group by drive_id
),

slow_places as (
    select slow_hours.drive_id, slow_hours.hour_utc, places.place_type, places.place_id
    from slow_hours
    inner join {{ ref('int_drives__places') }} as places on slow_hours.drive_id = places.drive_id
    union all
    select drive_id, hour_utc, 'RAID group' as place_type, raid_group_id as place_id from slow_hours
),

shared as (
    select drive_id, place_type, place_id, count(*) as shared_hours
    from (
        select *, count(*) over (partition by place_type, place_id, hour_utc) as drive_count
        from slow_places
    ) as crowds
    where drive_count >= 2
    group by drive_id, place_type, place_id
),

mostly_shared as (
    select
        shared.*,
        slow_counts.slow_hours,
        row_number() over (
            partition by shared.drive_id
            order by case shared.place_type when 'enclosure' then 1 when 'RAID group' then 2 else 3 end asc, shared.shared_hours desc, shared.place_id asc
        ) as place
    from shared
    inner join slow_counts on shared.drive_id = slow_counts.drive_id
    where 2 * shared.shared_hours > slow_counts.slow_hours
),

counted as (
    select *, count(*) over (partition by place_type, place_id) as drive_count
    from mostly_shared
    where place = 1
)

select drive_id, place_type, place_id, drive_count, shared_hours, slow_hours
from counted
where drive_count >= 2
