{{ config(materialized='view') }}
{%- set ratios = peer_ratios() %}
-- Each drive-hour compared with its peers. Every accepted row, of any role. Grain: drive_id, hour_utc.
with drive_hours as (
    select
        measured.*,
        raid_hours.latency_count,
        raid_hours.is_notable as is_in_notable_hour,
        raid_hours.data_drive_count,
        case when raid_hours.is_valid then raid_hours.median_latency_us end as median_latency_us,
        raid_hours.max_latency_us,
        raid_hours.mean_latency_us,
{%- for floor in var('io_count_floors') %}
        raid_hours.median_latency_{{ floor }}_us,
{%- endfor %}
        raid_hours.median_io_count,
        raid_hours.median_io_size_bytes,
        raid_hours.median_read_latency_us,
        raid_hours.median_write_latency_us,
        measured.is_data_drive and measured.is_covered as is_peer
    from {{ ref('int_drive_hours__measured') }} as measured
    inner join {{ ref('int_raid_hours__medians') }} as raid_hours
        on measured.raid_group_id = raid_hours.raid_group_id and measured.hour_utc = raid_hours.hour_utc
),

slowdowns as (
    select
        drive_hours.*,
        {{ ratios.slowdown }} as slowdown
{%- for side in ('read', 'write') %},
        case
            when is_peer and median_{{ side }}_latency_us > 0
                then {{ is_multiple(side ~ '_latency_us', 'median_' ~ side ~ '_latency_us') }}
        end as is_{{ side }}_multiple
{%- endfor %}
    from drive_hours
)

select
    drive_id,
    hour_utc,
    raid_group_id,
    is_data_drive,
    is_data_drive and data_drive_count >= {{ var('min_group_width') }} as is_in_population,
    is_peer,
    latency_us,
    median_latency_us,
    slowdown,
    {{ exclusion_reason() }} as exclusion_reason,
    coverage,
    io_count,
    median_io_count,
    {{ ratios.rate_imbalance }} as rate_imbalance,
    io_bytes,
    {{ ratios.io_size_bytes }} as io_size_bytes,
    median_io_size_bytes,
    {{ ratios.size_imbalance }} as size_imbalance,
{%- for side in ('read', 'write') %}
    {{ side }}_latency_us,
    median_{{ side }}_latency_us,
    {{ ratios[side ~ '_slowdown'] }} as {{ side }}_slowdown,
    is_{{ side }}_multiple,
    case
        when is_{{ side }}_multiple then {{ is_in_ticks(side ~ '_latency_us') }} and {{ is_in_ticks('median_' ~ side ~ '_latency_us') }}
    end as is_{{ side }}_multiple_in_ticks,
{%- endfor %}
    -- ties at the top: every drive that is as slow as the slowest
    coalesce(slowdown = max_latency_us / median_latency_us, false) as is_slowest,
    -- the same hour compared with other measures of its peers: the study says what depends on the choice
{%- for degree in ('slow', 'mild') %}
    case when slowdown is not null then latency_us / mean_latency_us >= {{ var(degree ~ '_threshold') }} end as is_{{ degree }}_by_mean,
{%- for floor in var('io_count_floors') %}
    case
        when is_peer and coalesce(io_count, {{ floor }}) >= {{ floor }}
            then latency_us / median_latency_{{ floor }}_us >= {{ var(degree ~ '_threshold') }}
    end as is_{{ degree }}_from_{{ floor }}_ios,
{%- endfor %}
{%- endfor %}
    is_in_notable_hour,
    declared_kind,
    is_group_guessed,
    cast(hour_utc as date) as day_utc
from slowdowns
