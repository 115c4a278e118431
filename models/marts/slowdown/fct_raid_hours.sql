{%- set past_medians = [] -%}
{%- for week in range(1, var('group_past_weeks') + 1) -%}
    {%- do past_medians.append(
        'max(raid_hours.median_latency_us) over (partition by raid_hours.raid_group_id order by raid_hours.hour_utc'
        ~ ' range between interval ' ~ 7 * week ~ ' day preceding and interval ' ~ 7 * week ~ ' day preceding)'
    ) -%}
{%- endfor -%}
-- Tails of each RAID-hour that has enough peers, longest first. Grain: raid_group_id, hour_utc.
select
    raid_hours.raid_group_id,
    raid_hours.hour_utc,
    coalesce(raid_groups.kind, 'unknown') as kind,
    raid_hours.data_drive_count,
    raid_hours.reporting_drive_count,
    raid_hours.median_latency_us,
    raid_hours.tail_1,
    raid_hours.tail_2,
    raid_hours.tail_3,
    raid_hours.slowest_drive_id,
    raid_hours.slow_drive_count,
    raid_hours.tail_1 >= {{ var('slow_threshold') }} as is_tail_hour,
    raid_hours.tail_1 >= {{ var('mild_threshold') }} as is_tail_hour_15,
    raid_hours.raid_io_count,
    raid_hours.rio_degradation,
    raid_hours.transition,
    -- windows, not a join: what does not ask for the column does not pay for it
    raid_hours.median_latency_us / {{ median_of(past_medians) }} as group_slowdown
from {{ ref('int_raid_hours') }} as raid_hours
left join {{ ref('int_raid_groups__kinds') }} as raid_groups on raid_hours.raid_group_id = raid_groups.raid_group_id
where raid_hours.is_valid
