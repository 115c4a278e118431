{{ config(meta={'made': 'each_build'}) }}
{%- set spell_gap_hours = 24 %}{#- quiet hours that a spell may hold; and drives share a spell when theirs began at most this many hours apart -#}
-- Slow drive-hours by the places in which a drive shares faults with others: its enclosure, its host, its array. How many drives of the place were slow.
-- Grain: drive_id, hour_utc, place_type.
with begun_hours as (
    select
        drive_id, raid_group_id, hour_utc,
        case
            when coalesce(
                {{ hour_index('hour_utc') }} - {{ hour_index('lag(hour_utc) over (partition by drive_id order by hour_utc)') }},
                {{ spell_gap_hours + 1 }}
            ) > {{ spell_gap_hours }}
                then hour_utc
        end as began_at
    from {{ ref('int_drive_hours__evidence') }}
),

slow_hours as (
    select
        drive_id, raid_group_id, hour_utc,
        max(began_at) over (partition by drive_id order by hour_utc rows between unbounded preceding and current row) as spell_began_at
    from begun_hours
),

group_hours as (
    select raid_group_id, hour_utc
    from slow_hours
    group by raid_group_id, hour_utc
    having count(*) > 1
),

-- drives that several hosts name share no cable: a pool or a device class holds drives to compare, and so does a group that is only guessed
no_places as (
    select group_hours.raid_group_id, group_hours.hour_utc
    from group_hours
    inner join {{ ref('int_drives__described') }} as members
        on group_hours.raid_group_id = members.raid_group_id
        and group_hours.hour_utc >= members.since_hour_utc
        and group_hours.hour_utc < members.to_hour_utc
    group by group_hours.raid_group_id, group_hours.hour_utc
    having min(case when members.is_group_guessed then 1 else 0 end) = 1
        or (min(members.host) <> max(members.host) and max(case when members.is_named_by_array then 1 else 0 end) = 0)
),

places as (
    select slow_hours.drive_id, slow_hours.hour_utc, slow_hours.spell_began_at, places.place_type, places.place_id, places.has_host
    from slow_hours
    inner join {{ ref('int_drives__places') }} as places
        on slow_hours.drive_id = places.drive_id
        and slow_hours.hour_utc >= places.from_hour_utc
        and slow_hours.hour_utc < places.to_hour_utc
    union all
    select
        slow_hours.drive_id, slow_hours.hour_utc, slow_hours.spell_began_at, 'raid_group' as place_type, slow_hours.raid_group_id as place_id,
        true as has_host
    from slow_hours
    inner join group_hours on slow_hours.raid_group_id = group_hours.raid_group_id and slow_hours.hour_utc = group_hours.hour_utc
    left join no_places on slow_hours.raid_group_id = no_places.raid_group_id and slow_hours.hour_utc = no_places.hour_utc
    where no_places.raid_group_id is null
)

select
    drive_id, hour_utc, place_type, place_id, spell_began_at,
    count(*) over (partition by place_type, place_id, hour_utc) as drive_count,
    -- drives that have been slow for weeks, each by itself, share nothing with the next that becomes slow beside them;
    -- which hosts share an enclosure is known only later
    count(*) over (
        partition by place_type, place_id, has_host, hour_utc order by spell_began_at
        range between interval {{ spell_gap_hours }} hour preceding and interval {{ spell_gap_hours }} hour following
    ) as spell_drive_count
from places
