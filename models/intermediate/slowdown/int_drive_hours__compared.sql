{{ config(materialized='view') }}
{%- set mixed_array_min_drives = 3 %}{#- data drives of one kind in an array of several kinds that are compared with each other; a great number leaves such arrays out -#}
{%- set ratios = peer_ratios() %}
-- Each drive-hour compared with its peers. Every accepted row, of any role. Grain: drive_id, hour_utc.
with drive_hours as (
    select
        measured.*,
        raid_hours.latency_count,
        raid_hours.is_notable as is_in_notable_hour,
        raid_hours.data_drive_count,
        case when raid_hours.is_valid then raid_hours.median_latency_us end as median_latency_us,
        raid_hours.max_latency_us, raid_hours.slow_at, raid_hours.mild_at, raid_hours.median_io_count, raid_hours.median_io_size_bytes,
        raid_hours.median_read_latency_us, raid_hours.median_write_latency_us,
        raid_hours.min_judged_ios, raid_hours.least_like_ios, raid_hours.judged_latency_count, raid_hours.judged_median_latency_us,
        measured.is_data_drive and measured.is_covered as is_peer
    from {{ ref('int_drive_hours__measured') }} as measured
    inner join {{ ref('int_raid_hours__medians') }} as raid_hours
        on measured.raid_group_id = raid_hours.raid_group_id and measured.hour_utc = raid_hours.hour_utc
),

slowdowns as (
    select drive_hours.*, {{ ratios.slowdown }} as slowdown
    from drive_hours
),

judged_hours as (
    select
        *,
        case
            when slowdown is null then null
            when io_count < min_judged_ios then 'too_few_ios'
            when io_count < least_like_ios then 'unlike_load'
            when judged_latency_count < {{ var('min_reporting_drives') }} or judged_median_latency_us = 0 then 'no_peers'
        end as why_not_judged
    from slowdowns
)

select
    drive_id, hour_utc, raid_group_id, is_data_drive,
    is_data_drive
    and data_drive_count >= case when is_of_mixed_array then {{ mixed_array_min_drives }} else {{ var('min_group_width') }} end as is_in_population,
    is_peer, latency_us, median_latency_us, slowdown,
    coalesce(slowdown >= slow_at, false) as is_slow,
    coalesce(slowdown >= mild_at, false) as is_mild,
    slow_at, mild_at,
    {{ exclusion_reason() }} as exclusion_reason,
    why_not_judged,
    case when slowdown is not null and why_not_judged is null then latency_us / judged_median_latency_us end as judged_slowdown,
    judged_median_latency_us,
    coverage, io_count, median_io_count,
    {{ ratios.rate_imbalance }} as rate_imbalance,
    io_bytes,
    {{ ratios.io_size_bytes }} as io_size_bytes,
    median_io_size_bytes,
    {{ ratios.size_imbalance }} as size_imbalance,
{%- for side in ('read', 'write') %}
    {{ side }}_latency_us,
    median_{{ side }}_latency_us,
    {{ ratios[side ~ '_slowdown'] }} as {{ side }}_slowdown,
{%- endfor %}
    -- ties at the top: every drive that is as slow as the slowest
    coalesce(slowdown = max_latency_us / median_latency_us, false) as is_slowest,
    is_in_notable_hour, declared_kind, is_group_guessed,
    cast(hour_utc as date) as day_utc
from judged_hours
