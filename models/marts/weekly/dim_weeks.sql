{{ config(meta={'made': 'each_build'}) }}
-- ISO weeks (UTC) with a valid RAID-hour, and how far they have been observed; none that was pruned. Grain: week_utc.
with weeks as (
    select
        cast(date_trunc('week', day_utc) as timestamp) as week_utc,
        min(first_hour_utc) as first_hour_utc,
        max(last_hour_utc) as last_hour_utc,
        cast(sum(raid_hours) as bigint) as raid_hours
    from {{ ref('int_raid_group_days') }}
    where raid_hours > 0 and {{ is_whole_week('day_utc') }}
    group by cast(date_trunc('week', day_utc) as timestamp)
)

select
    weeks.week_utc, weeks.first_hour_utc, weeks.last_hour_utc, weeks.raid_hours,
    -- over for the fleet: its data reach the last hour of the week; a wall clock would make the answer depend on when it is asked
    publication.last_hour_utc >= weeks.week_utc + interval 167 hour as is_complete
from weeks
cross join {{ ref('stg_raw__publication') }} as publication
