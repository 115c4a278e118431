{{ config(meta={'made': 'each_build'}) }}
-- How often RAID groups met a slow drive lately: tails and slow drive-hours of the fleet's last hours. Grain: kind.
with recent_raid_hours as (
    select
        raid_hours.kind, raid_hours.is_tail_hour, raid_hours.reporting_drive_count, raid_hours.slow_drive_count
    from {{ ref('fct_raid_hours') }} as raid_hours
    inner join {{ ref('publication') }} as publication
        on raid_hours.hour_utc > publication.last_hour_utc - interval {{ var('recent_hours') }} hour
        and raid_hours.hour_utc <= publication.last_hour_utc
),

totals as (
    select
        kind,
        count(*) as raid_hours,
        count(case when is_tail_hour then 1 end) as tail_hours,
        cast(sum(reporting_drive_count) as bigint) as drive_hours,
        cast(sum(slow_drive_count) as bigint) as slow_drive_hours
    from recent_raid_hours
    group by kind
)

select
    kind, raid_hours, tail_hours,
    cast(tail_hours as double) / raid_hours as tail_ratio,
    drive_hours, slow_drive_hours,
    cast(slow_drive_hours as double) / nullif(cast(drive_hours as double), 0.0) as slow_ratio
from totals
