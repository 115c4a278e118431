{{ config(meta={'by_week': {'column': 'hour_utc', 'look_back': 4}}) }}
-- RAID-hours in which the whole group was slow: against its own past, or by as many slow drives as slowdowns can show.
-- Joins, not windows: a query of one week then reads five weeks only. Grain: raid_group_id, hour_utc.
with raid_hours as (
    select raid_group_id, hour_utc, median_latency_us, reporting_drive_count, slow_drive_count, tail_1
    from {{ ref('int_raid_hours') }}
    where is_valid
),

past_hours as (
{%- for week in range(1, var('group_past_weeks') + 1) %}
    select raid_group_id, hour_utc + interval {{ 7 * week }} day as hour_utc, median_latency_us from raid_hours{{ "\n    union all" if not loop.last }}
{%- endfor %}
),

usual as (
    select raid_group_id, hour_utc, {{ median_of_group('median_latency_us') }} as usual_median_latency_us, count(*) as past_week_count
    from past_hours
    group by raid_group_id, hour_utc
),

judged as (
    select
        raid_hours.*,
        usual.usual_median_latency_us,
        coalesce(usual.past_week_count, 0) as past_week_count,
        raid_hours.median_latency_us / usual.usual_median_latency_us as group_slowdown,
        {{ is_most_of_its_drives('raid_hours') }} as is_most_of_its_drives
    from raid_hours
    left join usual on raid_hours.raid_group_id = usual.raid_group_id and raid_hours.hour_utc = usual.hour_utc
)

select
    judged.raid_group_id, judged.hour_utc,
    coalesce(raid_groups.kind, 'unknown') as kind,
    judged.median_latency_us, judged.usual_median_latency_us, judged.past_week_count, judged.group_slowdown, judged.reporting_drive_count,
    judged.slow_drive_count, judged.tail_1,
    coalesce(judged.group_slowdown >= {{ var('group_slowdown') }}, false) as is_above_usual,
    judged.is_most_of_its_drives
from judged
left join {{ ref('int_raid_groups__kinds') }} as raid_groups on judged.raid_group_id = raid_groups.raid_group_id
where judged.group_slowdown >= {{ var('group_slowdown') }} or judged.is_most_of_its_drives
