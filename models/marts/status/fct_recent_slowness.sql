{{ config(meta={'made': 'each_build'}) }}
-- The drives that were slowest lately, slowest first: their greatest slowdown in the fleet's last hours. Grain: drive_id.
with recent_drive_hours as (
    select
        slow.drive_id, slow.raid_group_id, slow.hour_utc, slow.slowdown,
        row_number() over (partition by slow.drive_id order by slow.slowdown desc nulls last, slow.hour_utc desc nulls last) as hour_rank,
        count(case when slow.is_slow then 1 end) over (partition by slow.drive_id) as slow_hours
    from {{ ref('int_drive_hours__slow') }} as slow
    inner join {{ ref('publication') }} as publication
        on slow.hour_utc > publication.last_hour_utc - interval {{ var('recent_hours') }} hour
        and slow.hour_utc <= publication.last_hour_utc
    where slow.is_mild
),

ranked_hours as (
    select
        recent_drive_hours.*,
        cast(row_number() over (order by slowdown desc nulls last, drive_id asc) as bigint) as slowness_rank
    from recent_drive_hours
    where hour_rank = 1
)

select
    ranked_hours.slowness_rank, ranked_hours.drive_id,
    drives.kind, drives.model, drives.host, drives.device, drives.slot,
    ranked_hours.raid_group_id, ranked_hours.hour_utc, ranked_hours.slowdown, ranked_hours.slow_hours
from ranked_hours
inner join {{ ref('dim_drives') }} as drives on ranked_hours.drive_id = drives.drive_id
where ranked_hours.slowness_rank <= {{ var('slowest_drives') }}
