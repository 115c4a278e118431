{{ config(meta={'made': 'by_day'}) }}
-- Each tail hour without its slowest drive and without its two slowest: the others over their own median. Grain: raid_group_id, hour_utc.
with tail_hours as (
    select
        raid_hours.raid_group_id, raid_hours.hour_utc, raid_hours.tail_1, raid_hours.slow_at, raid_hours.slowest_drive_id,
        raid_hours.transition = 'stable_to_tail' and raid_hours.rio_degradation is not null as has_known_drop,
        raid_hours.raid_io_count,
        medians.previous_raid_io_count,
        raid_hours.day_utc
    from {{ ref('int_raid_hours') }} as raid_hours
    inner join {{ ref('int_raid_hours__medians') }} as medians
        on raid_hours.raid_group_id = medians.raid_group_id and raid_hours.hour_utc = medians.hour_utc
    where raid_hours.is_tail_hour
),

ranked_hours as (
    select
        drive_hours.raid_group_id, drive_hours.hour_utc, drive_hours.drive_id, drive_hours.latency_us,
        row_number() over (
            partition by drive_hours.raid_group_id, drive_hours.hour_utc order by drive_hours.slowdown desc, drive_hours.drive_id asc
        ) as tail_rank
    from {{ ref('int_drive_hours__notable') }} as drive_hours
    inner join tail_hours on drive_hours.raid_group_id = tail_hours.raid_group_id and drive_hours.hour_utc = tail_hours.hour_utc
    where drive_hours.slowdown is not null
),

other_hours as (
    select
        raid_group_id, hour_utc,
        max(case when tail_rank = 2 then drive_id end) as second_drive_id,
{%- for removed in (1, 2) %}
        count(case when tail_rank > {{ removed }} then 1 end) as drive_count_{{ removed }},
        {{ median_of_group('case when tail_rank > ' ~ removed ~ ' then latency_us end') }} as median_latency_{{ removed }}_us,
        max(case when tail_rank > {{ removed }} then latency_us end) as max_latency_{{ removed }}_us{{ "," if not loop.last }}
{%- endfor %}
    from ranked_hours
    group by raid_group_id, hour_utc
)

select
    tail_hours.raid_group_id, tail_hours.hour_utc, tail_hours.tail_1, tail_hours.slowest_drive_id,
    other_hours.second_drive_id,
{%- for removed, name in ((1, 'one'), (2, 'two')) %}
    case
        when other_hours.drive_count_{{ removed }} >= {{ var('min_reporting_drives') }} and other_hours.median_latency_{{ removed }}_us > 0
            then other_hours.max_latency_{{ removed }}_us / other_hours.median_latency_{{ removed }}_us
    end as tail_1_without_{{ name }},
{%- endfor %}
    -- without its slowest drive it would have been no tail hour
    other_hours.drive_count_1 >= {{ var('min_reporting_drives') }}
    and other_hours.median_latency_1_us > 0
    and other_hours.max_latency_1_us / other_hours.median_latency_1_us < tail_hours.slow_at as is_caused_by_slowest,
    case when tail_hours.has_known_drop then tail_hours.previous_raid_io_count end as io_count_before,
    case when tail_hours.has_known_drop then tail_hours.raid_io_count end as io_count_after,
    tail_hours.day_utc
from tail_hours
inner join other_hours on tail_hours.raid_group_id = other_hours.raid_group_id and tail_hours.hour_utc = other_hours.hour_utc
