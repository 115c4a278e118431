{#- Quotients of two stored columns: worked out when they are read, from the same doubles. Stored they would be half of the store. -#}
{%- set ratios = {
    'slowdown': 'case when is_peer then latency_us / median_latency_us end',
    'rate_imbalance': 'case when is_peer then cast(io_count as double) / nullif(median_io_count, 0.0) end',
    'size_imbalance': 'case when is_peer then io_size_bytes / nullif(median_io_size_bytes, 0.0) end',
    'read_slowdown': 'case when is_peer then read_latency_us / nullif(median_read_latency_us, 0.0) end',
    'write_slowdown': 'case when is_peer then write_latency_us / nullif(median_write_latency_us, 0.0) end',
} -%}
{{ config(materialized="by_day", ratios=ratios) }}
-- Each drive-hour compared with its peers. Every accepted row, of any role. Grain: drive_id, hour_utc.
with drive_hours as (
    select
        measured.*,
        raid_hours.is_valid,
        raid_hours.latency_count,
        raid_hours.data_drive_count,
        raid_hours.median_latency_us as raid_median_latency_us,
        raid_hours.max_latency_us,
        raid_hours.mean_latency_us,
{%- for floor in var('io_count_floors') %}
        raid_hours.median_latency_{{ floor }}_us,
{%- endfor %}
        raid_hours.median_io_count,
        raid_hours.median_io_size_bytes,
        raid_hours.median_read_latency_us,
        raid_hours.median_write_latency_us,
        raid_hours.previous_is_valid,
        raid_hours.previous_median_latency_us,
        measured.is_data_drive and measured.is_covered as is_peer
    from {{ ref('int_drive_hours__measured') }} as measured
    inner join {{ ref('int_raid_hours__medians') }} as raid_hours
        on measured.raid_group_id = raid_hours.raid_group_id and measured.hour_utc = raid_hours.hour_utc
),

-- the same drive in the same group one hour earlier
previous as (
    select drive_id, raid_group_id, hour_utc + interval 1 hour as next_hour_utc, latency_us
    from {{ ref('int_drive_hours__measured') }}
    where is_data_drive and is_covered
),

slowdowns as (
    select
        drive_hours.*,
        case when is_peer and is_valid then drive_hours.latency_us / drive_hours.raid_median_latency_us end as slowdown,
        previous.drive_id is not null as was_peer,
        case
            when drive_hours.previous_is_valid then previous.latency_us / drive_hours.previous_median_latency_us
        end as previous_slowdown
{%- for side in ('read', 'write') %},
        case
            when is_peer and median_{{ side }}_latency_us > 0
                then {{ is_multiple(side ~ '_latency_us', 'median_' ~ side ~ '_latency_us') }}
        end as is_{{ side }}_multiple
{%- endfor %}
    from drive_hours
    left join previous
        on drive_hours.drive_id = previous.drive_id
        and drive_hours.raid_group_id = previous.raid_group_id
        and drive_hours.hour_utc = previous.next_hour_utc
),

compared as (
    select
        slowdowns.drive_id,
        slowdowns.hour_utc,
        slowdowns.raid_group_id,
        is_data_drive,
        is_data_drive and data_drive_count >= {{ var('min_group_width') }} as is_in_population,
        is_peer,
        latency_us,
        case when is_valid then raid_median_latency_us end as median_latency_us,
        {{ exclusion_reason() }} as exclusion_reason,
        coverage,
        io_count,
        median_io_count,
        io_size_bytes,
        median_io_size_bytes,
        read_latency_us,
        median_read_latency_us,
        write_latency_us,
        median_write_latency_us,
{%- for side in ('read', 'write') %}
        is_{{ side }}_multiple,
        case
            when is_{{ side }}_multiple then {{ is_in_ticks(side ~ '_latency_us') }} and {{ is_in_ticks('median_' ~ side ~ '_latency_us') }}
        end as is_{{ side }}_multiple_in_ticks,
{%- endfor %}
        -- ties at the top: every drive that is as slow as the slowest
        coalesce(slowdown = max_latency_us / raid_median_latency_us, false) as is_slowest,
        is_peer and was_peer as is_peer_again,
        -- null: the drive had no slowdown in this group the hour before
        case when slowdown is not null then previous_slowdown >= {{ var('slow_threshold') }} end as was_slow,
        case when slowdown is not null then previous_slowdown >= {{ var('mild_threshold') }} end as was_mild,
        -- the same hour compared with other measures of its peers: the study says what depends on the choice
{%- for degree in ('slow', 'mild') %}
        case when slowdown is not null then slowdowns.latency_us / slowdowns.mean_latency_us >= {{ var(degree ~ '_threshold') }} end as is_{{ degree }}_by_mean,
{%- for floor in var('io_count_floors') %}
        case
            when is_peer and coalesce(io_count, {{ floor }}) >= {{ floor }}
                then slowdowns.latency_us / slowdowns.median_latency_{{ floor }}_us >= {{ var(degree ~ '_threshold') }}
        end as is_{{ degree }}_from_{{ floor }}_ios,
{%- endfor %}
{%- endfor %}
        declared_kind,
        is_group_guessed,
        cast(slowdowns.hour_utc as date) as day_utc
    from slowdowns
)

select
    *
{%- for name, ratio in ratios.items() %},
    {{ ratio }} as {{ name }}
{%- endfor %}
from compared
