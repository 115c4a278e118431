{%- set spell_gap_hours = 24 %}{#- quiet hours that a spell may hold; and drives share a spell when theirs began at most this many hours apart -#}
-- Slow hours of evidence of each drive and day, and whose they were. Grain: drive_id, day_utc.
with begun as (
    select
        drive_id, raid_group_id, hour_utc, day_utc, rate_imbalance,
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
        drive_id, raid_group_id, hour_utc, day_utc, rate_imbalance,
        max(began_at) over (partition by drive_id order by hour_utc rows between unbounded preceding and current row) as spell_began_at,
        count(*) over (partition by raid_group_id, hour_utc) as slow_drives
    from begun
),

places as (
    select drive_id, hour_utc, spell_began_at, 'raid group' as place_type, raid_group_id as place_id
    from slow_hours
    union all
    select
        slow_hours.drive_id, slow_hours.hour_utc, slow_hours.spell_began_at,
        case when described.host is not null then 'host' else 'enclosure' end as place_type,
        -- an enclosure's name need not be unique beyond its host; which hosts share one is known only later
        coalesce(described.host, described.site || '/' || described.enclosure, described.enclosure) as place_id
    from slow_hours
    inner join {{ ref('int_drives__described') }} as described
        on slow_hours.drive_id = described.drive_id
        and slow_hours.hour_utc >= described.from_hour_utc
        and slow_hours.hour_utc < described.to_hour_utc
),

crowds as (
    select *
    from (
        select *, count(*) over (partition by place_type, place_id, hour_utc) as slow_drives
        from places
    ) as counted
    where slow_drives >= {{ var('together_drives') }}
),

-- drives that have been slow for weeks, each by itself, share nothing with the next that becomes slow beside them
together as (
    select distinct drive_id, hour_utc
    from (
        select own.drive_id, own.hour_utc
        from crowds as own
        inner join crowds as others
            on own.place_type = others.place_type
            and own.place_id = others.place_id
            and own.hour_utc = others.hour_utc
            and others.spell_began_at >= own.spell_began_at - interval {{ spell_gap_hours }} hour
            and others.spell_began_at <= own.spell_began_at + interval {{ spell_gap_hours }} hour
        group by own.drive_id, own.hour_utc, own.place_type, own.place_id
        having count(*) >= {{ var('together_drives') }}
    ) as shared
),

judged as (
    select
        slow_hours.drive_id, slow_hours.day_utc, slow_hours.hour_utc, slow_hours.rate_imbalance,
        together.hour_utc is not null as is_together,
        -- where too few drives are left to judge the hour without it, it is the drive's if no other was slow
        case
            when tail_hours.tail_1_without_one is null then slow_hours.slow_drives = 1
            else tail_hours.is_caused_by_slowest and tail_hours.slowest_drive_id = slow_hours.drive_id
        end as is_caused,
        slow_hours.slow_drives = 2 and not tail_hours.is_caused_by_slowest as is_paired
    from slow_hours
    left join together on slow_hours.drive_id = together.drive_id and slow_hours.hour_utc = together.hour_utc
    left join {{ ref('int_raid_hours__counterfactual') }} as tail_hours
        on slow_hours.raid_group_id = tail_hours.raid_group_id and slow_hours.hour_utc = tail_hours.hour_utc
)

select
    drive_id, day_utc,
    count(*) as slow_hours,
    {{ counted('is_together') }} as together_hours,
    {{ counted('is_caused') }} as tail_hours_caused,
    {{ counted('is_paired') }} as tail_hours_paired,
    {{ median_of_group('rate_imbalance') }} as load_ratio,
    max(hour_utc) as last_slow_hour_utc
from judged
group by drive_id, day_utc
