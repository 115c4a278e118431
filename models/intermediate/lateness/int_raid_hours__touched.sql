-- RAID-hours that what has just arrived may change: all that this build computes again. Grain: raid_group_id, hour_utc.
with seen_from_hosts as (
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as named_drive_id, true as has_arrived
    from {{ source('raw', 'arrived_drive_hours') }} as delivered
    {{ joined_aliases('hour_utc') }}
    where delivered.source is not null
    union all
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as named_drive_id, false as has_arrived
    from {{ source('raw', 'reread_drive_hours') }} as delivered
    {{ joined_aliases('hour_utc') }}
),

-- stretches in which a drive that hosts see has other rows, or rows in another group
renamed as (
    select drive_id, from_hour_utc, to_hour_utc from {{ ref('int_aliases__changed') }}
    union
    select drive_id, from_hour_utc, to_hour_utc
    from {{ ref('int_drives__reassigned') }}
    where drive_id in (select drive_id from {{ ref('int_drives__host_spans') }})
),

-- drive-hours of which hosts told before: what has arrived may also set another source's row in its right again
told_before as (
    select distinct named_drive_id, hour_utc
    from seen_from_hosts
    where has_arrived and hour_utc in (select hour_utc from {{ source('raw', 'reread_drive_hours') }})
),

-- what hosts saw, as far as this build makes it anew: drive and group as they are now
identified as (
    select
        seen.named_drive_id as drive_id,
        {{ placed_group('seen', 'segments') }} as raid_group_id,
        seen.hour_utc
    from seen_from_hosts as seen
    left join {{ ref('int_drives__segments') }} as segments
        on seen.named_drive_id = segments.drive_id
        and segments.from_hour_utc <= seen.hour_utc
        and segments.to_hour_utc > seen.hour_utc
    where seen.has_arrived
        or exists (
            select 1 from told_before where told_before.named_drive_id = seen.named_drive_id and told_before.hour_utc = seen.hour_utc
        )
        or exists (
            select 1
            from renamed
            where renamed.drive_id = seen.named_drive_id
                and renamed.from_hour_utc <= seen.hour_utc
                and renamed.to_hour_utc > seen.hour_utc
        )
),

-- drive-hours of which another source may be believed now, or that stand in another place
rejudged as (
    select drive_id, hour_utc from identified
    union
    select drive_id, hour_utc
    from {{ source('raw', 'arrived_drive_hours') }}
    where source is null and drive_id in (select drive_id from {{ ref('int_drives__host_spans') }})
    union
    select drive_hours.drive_id, drive_hours.hour_utc
    from {{ source('plan', 'stored_drive_hours') }} as drive_hours
    inner join renamed
        on drive_hours.drive_id = renamed.drive_id
        and renamed.from_hour_utc <= drive_hours.hour_utc
        and renamed.to_hour_utc > drive_hours.hour_utc
),

-- hours within which something was measured that came without them
sampled as (
    select distinct coalesce(aliases.drive_id, delivered.drive_id) as drive_id, date_trunc('hour', delivered.from_utc) as hour_utc
    from {{ source('raw', 'arrived_drive_samples') }} as delivered
    {{ joined_aliases('from_utc') }}
),

arrived as (
    select drive_id, raid_group_id, hour_utc from {{ source('raw', 'arrived_drive_hours') }} where source is null
    union all
    select drive_id, raid_group_id, hour_utc from identified
    union all
    select drive_hours.drive_id, drive_hours.raid_group_id, drive_hours.hour_utc
    from {{ source('plan', 'stored_drive_hours') }} as drive_hours
    inner join rejudged on drive_hours.drive_id = rejudged.drive_id and drive_hours.hour_utc = rejudged.hour_utc
    union all
    select drive_hours.drive_id, drive_hours.raid_group_id, drive_hours.hour_utc
    from {{ source('plan', 'stored_drive_hours') }} as drive_hours
    inner join sampled on drive_hours.drive_id = sampled.drive_id and drive_hours.hour_utc = sampled.hour_utc
    union all
    select drive_id, raid_group_id, hour_utc
    from {{ source('raw', 'retired_drive_hours') }}
    where retired_by_delivery_seq in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
),

arrived_raid_hours as (
    select distinct raid_group_id, hour_utc from arrived
),

stored as (
    select raid_group_id, hour_utc from {{ source('plan', 'stored_raid_hours') }}
),

-- a drive that reports from another group than inventory names no longer counts in the one inventory names
displaced as (
    select segments.raid_group_id, arrived.hour_utc
    from arrived
    inner join {{ ref('int_drives__segments') }} as segments
        on arrived.drive_id = segments.drive_id
        and segments.from_hour_utc <= arrived.hour_utc
        and segments.to_hour_utc > arrived.hour_utc
    where segments.raid_group_id <> arrived.raid_group_id
        and arrived.hour_utc in (select hour_utc from stored)
),

reassigned as (
    select stored.raid_group_id, stored.hour_utc
    from stored
    inner join {{ ref('int_drives__reassigned') }} as reassigned
        on stored.raid_group_id = reassigned.raid_group_id
        and reassigned.from_hour_utc <= stored.hour_utc
        and reassigned.to_hour_utc > stored.hour_utc
    union
    select drive_hours.raid_group_id, drive_hours.hour_utc
    from {{ source('plan', 'stored_drive_hours') }} as drive_hours
    inner join {{ ref('int_drives__reassigned') }} as reassigned
        on drive_hours.drive_id = reassigned.drive_id
        and reassigned.from_hour_utc <= drive_hours.hour_utc
        and reassigned.to_hour_utc > drive_hours.hour_utc
),

-- what counts as another kind than when its hours were counted
reclassified as (
    select raid_group_id, hour_utc
    from {{ source('plan', 'stored_drive_hours') }}
    where drive_id in (select drive_id from {{ ref('int_drives__reclassified') }})
    union
    select raid_group_id, hour_utc
    from stored
    where raid_group_id in (select raid_group_id from {{ ref('int_raid_groups__reclassified') }})
),

touched as (
    select raid_group_id, hour_utc from arrived_raid_hours
    union
    select raid_group_id, hour_utc from displaced
    union
    select raid_group_id, hour_utc from reassigned
    union
    select raid_group_id, hour_utc from reclassified
),

affected as (
    select raid_group_id, hour_utc from touched
    union
    -- the hour after looks back: transitions, RIO degradation, the censoring of an interval
    select stored.raid_group_id, stored.hour_utc
    from touched
    inner join stored
        on touched.raid_group_id = stored.raid_group_id and touched.hour_utc + interval 1 hour = stored.hour_utc
)

select raid_group_id, hour_utc
from affected
-- what was pruned stays as it was computed: its peers are gone
where hour_utc >= coalesce((select max(before_utc) from {{ source('plan', 'pruned') }}), timestamp '{{ var("beginning_of_time") }}')
