-- Slow hours of evidence of each drive and day, and whose they were. Grain: drive_id, day_utc.
with slow_hours as (
    select
        drive_id, raid_group_id, hour_utc, day_utc, rate_imbalance,
        count(*) over (partition by raid_group_id, hour_utc) as slow_drives
    from {{ ref('int_drive_hours__evidence') }}
),

-- where inventory names a host, its enclosure adds nothing
shared_hours as (
    select
        drive_id, hour_utc,
        max(case when place_type = 'raid_group' then spell_drive_count else 0 end) >= {{ var('together_drives') }}
        or coalesce(max(case when place_type = 'host' then spell_drive_count end), max(spell_drive_count)) >= {{ var('together_drives') }} as is_together,
        max(case when place_type = 'raid_group' then 1 else 0 end) = 1 as is_of_array
    from {{ ref('int_drive_hours__together') }}
    group by drive_id, hour_utc
),

judged_hours as (
    select
        slow_hours.drive_id, slow_hours.day_utc, slow_hours.hour_utc, slow_hours.rate_imbalance,
        coalesce(shared_hours.is_together, false) as is_together,
        -- no request waits for all of a device class or of a guess: an hour with several slow drives is that of each. Where too few drives are left to
        -- judge the hour without it, it is the drive's if no other was slow
        case
            when slow_hours.slow_drives > 1 and not coalesce(shared_hours.is_of_array, false) then true
            when tail_hours.tail_1_without_one is null then slow_hours.slow_drives = 1
            else tail_hours.is_caused_by_slowest and tail_hours.slowest_drive_id = slow_hours.drive_id
        end as is_caused,
        slow_hours.slow_drives = 2 and shared_hours.is_of_array and not tail_hours.is_caused_by_slowest as is_paired
    from slow_hours
    left join shared_hours on slow_hours.drive_id = shared_hours.drive_id and slow_hours.hour_utc = shared_hours.hour_utc
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
from judged_hours
group by drive_id, day_utc
