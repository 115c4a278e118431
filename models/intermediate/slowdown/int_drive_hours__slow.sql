{{ config(meta={'made': 'by_day'}) }}
-- Slow and mildly slow drive-hours, and the hour after each: all that intervals are made of. Grain: drive_id, hour_utc.
with drive_days as (
    select *
    from {{ ref('int_drive_days') }}
    where mild_in <> 0 or after_mild_in <> 0
)

select
    drive_hours.drive_id, drive_hours.hour_utc, drive_hours.raid_group_id, drive_hours.latency_us, drive_hours.median_latency_us,
    drive_hours.slowdown, drive_hours.is_slow, drive_hours.is_mild, drive_hours.slow_at, drive_hours.mild_at, drive_hours.rate_imbalance,
    drive_hours.size_imbalance,
    -- slow in one direction by an exact multiple of its peers, in whole ticks of the firmware's timer
{%- for side in ('read', 'write') %}
    coalesce(
        drive_hours.{{ side }}_slowdown >= drive_hours.slow_at
        and {{ is_multiple_in_ticks('drive_hours.' ~ side ~ '_latency_us', 'drive_hours.median_' ~ side ~ '_latency_us') }}, false
    ){{ " or" if not loop.last else " as is_side_in_ticks," }}
{%- endfor %}
    -- null: the drive had no slowdown in this group the hour before
{%- for degree in ('slow', 'mild') %}
    case
        when {{ has_hour('drive_days.after_slowdown_in', 'drive_hours.hour_utc') }}
            then {{ has_hour('drive_days.after_' ~ degree ~ '_in', 'drive_hours.hour_utc') }}
    end as was_{{ degree }},
{%- endfor %}
    drive_hours.day_utc
from {{ ref('int_drive_hours__notable') }} as drive_hours
inner join drive_days
    on drive_hours.drive_id = drive_days.drive_id
    and drive_hours.raid_group_id = drive_days.raid_group_id
    and drive_hours.day_utc = drive_days.day_utc
where drive_hours.is_in_population
    and drive_hours.slowdown is not null
    and {{ has_hour('drive_days.mild_in | drive_days.after_mild_in', 'drive_hours.hour_utc') }}
