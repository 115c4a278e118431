{{ config(meta={'by_week': {'column': 'hour_utc', 'look_back': 4}}) }}
-- RAID-hours in which the whole group was slow: against its own past, or by as many slow drives as slowdowns can show.
-- Grain: raid_group_id, hour_utc.
{%- set past -%}
    partition by raid_hours.raid_group_id, raid_hours.day_of_week, raid_hours.hour_of_day order by raid_hours.hour_utc
    range between interval {{ 7 * var('group_past_weeks') }} day preceding and interval 7 day preceding
{%- endset %}
with raid_hours as (
    select
        raid_group_id, hour_utc, median_latency_us, reporting_drive_count, slow_drive_count, tail_1,
        dayofweek(hour_utc) as day_of_week,
        hour(hour_utc) as hour_of_day,
        {{ is_most_of_its_drives('int_raid_hours') }} as is_most_of_its_drives
    from {{ ref('int_raid_hours') }} as int_raid_hours
    where is_valid
),

-- a median over the past of every hour takes more memory than there is: an hour far above its past is far above the least of it
suspect_slots as (
    select raid_group_id, day_of_week, hour_of_day
    from raid_hours
    group by raid_group_id, day_of_week, hour_of_day
    having max(median_latency_us) / min(median_latency_us) >= {{ var('group_slowdown') }}
        or count(case when is_most_of_its_drives then 1 end) > 0
),

judged_hours as (
    select
        raid_hours.*,
        {{ median_of_group('raid_hours.median_latency_us', past) }} as usual_median_latency_us,
        count(*) over ({{ past }}) as past_week_count
    from raid_hours
    inner join suspect_slots
        on raid_hours.raid_group_id = suspect_slots.raid_group_id
        and raid_hours.day_of_week = suspect_slots.day_of_week
        and raid_hours.hour_of_day = suspect_slots.hour_of_day
),

compared_hours as (
    select *, median_latency_us / usual_median_latency_us as group_slowdown
    from judged_hours
)

select
    compared_hours.raid_group_id, compared_hours.hour_utc,
    coalesce(raid_groups.kind, 'unknown') as kind,
    compared_hours.median_latency_us, compared_hours.usual_median_latency_us, compared_hours.past_week_count, compared_hours.group_slowdown,
    compared_hours.reporting_drive_count, compared_hours.slow_drive_count, compared_hours.tail_1,
    coalesce(compared_hours.group_slowdown >= {{ var('group_slowdown') }}, false) as is_above_usual,
    compared_hours.is_most_of_its_drives
from compared_hours
left join {{ ref('int_raid_groups__kinds') }} as raid_groups on compared_hours.raid_group_id = raid_groups.raid_group_id
where compared_hours.group_slowdown >= {{ var('group_slowdown') }} or compared_hours.is_most_of_its_drives
