{{ config(meta={'made': 'by_day_when_asked'}) }}
{%- set io_count_floors = [10, 100] %}{#- variants: fewer I/Os make no latency -#}
{%- set mild, slow = var('study_edges') %}
{#- how a slowdown is made otherwise -#}
{%- set variants = ['read', 'write', 'mean'] -%}
{%- for floor in io_count_floors %}{% do variants.append('io_' ~ floor) %}{% endfor -%}
-- Drive-hours and tails of each RAID group under other rules, and exact multiples and imbalances, in counts that add up: what the study says
-- of what depends on a rule. Grain: day_utc, raid_group_id, kind.
with drive_hours as (
    select * from {{ source('intermediate', 'int_drive_hours') }} where is_peer
),

peers as (
    select
        raid_group_id, hour_utc,
        {{ mean_of_group('latency_us') }} as mean_latency_us
{%- for floor in io_count_floors %},
        count(case when coalesce(io_count >= {{ floor }}, true) then latency_us end) as latency_count_{{ floor }},
        {{ median_of_group('case when coalesce(io_count >= ' ~ floor ~ ', true) then latency_us end') }} as median_latency_{{ floor }}_us
{%- endfor %}
    from drive_hours
    group by raid_group_id, hour_utc
),

compared_hours as (
    select
        drive_hours.*,
        drives.kind,
        case when drive_hours.slowdown is not null then drive_hours.latency_us / peers.mean_latency_us end as mean_slowdown
{%- for floor in io_count_floors %},
        case
            when coalesce(drive_hours.io_count >= {{ floor }}, true)
                and peers.latency_count_{{ floor }} >= {{ var('min_reporting_drives') }}
                and peers.median_latency_{{ floor }}_us > 0
                then drive_hours.latency_us / peers.median_latency_{{ floor }}_us
        end as io_{{ floor }}_slowdown
{%- endfor %}
    from drive_hours
    inner join peers on drive_hours.raid_group_id = peers.raid_group_id and drive_hours.hour_utc = peers.hour_utc
    inner join {{ source('intermediate', 'int_drives') }} as drives on drive_hours.drive_id = drives.drive_id
),

of_drives as (
    select
        day_utc, raid_group_id,
        kind
{%- for variant in variants %},
        {{ counted(variant ~ '_slowdown is not null') }} as {{ variant }}_hours,
        {{ counted(variant ~ '_slowdown >= ' ~ slow) }} as {{ variant }}_slow_hours
{%- endfor %}
{%- for side in ('read', 'write') %}
{%- set latencies = [side ~ '_latency_us', 'median_' ~ side ~ '_latency_us'] %},
        {{ counted(latencies[1] ~ ' > 0 and ' ~ is_multiple(*latencies)) }} as {{ side }}_multiple_hours,
        {{ counted(latencies[1] ~ ' > 0 and ' ~ is_multiple_in_ticks(*latencies)) }} as {{ side }}_tick_hours
{%- endfor %}
{%- for imbalance in ('rate', 'size') %},
        {{ counted('slowdown is not null and ' ~ imbalance ~ '_imbalance is not null') }} as {{ imbalance }}_hours,
        {{ counted('slowdown is not null and ' ~ imbalance ~ '_imbalance >= ' ~ var('imbalanced')) }} as {{ imbalance }}_imbalanced_hours
{%- endfor %}
    from compared_hours
    group by day_utc, raid_group_id, kind
),

-- how many drives are slow says which tails are
raid_hours as (
    select
        day_utc, raid_group_id,
        hour_utc
{%- for variant in variants %},
        count({{ variant }}_slowdown) as {{ variant }}_drive_count,
        {{ counted(variant ~ '_slowdown >= ' ~ slow) }} as {{ variant }}_slow_drive_count,
        {{ counted(variant ~ '_slowdown >= ' ~ mild) }} as {{ variant }}_mild_drive_count
{%- endfor %}
    from compared_hours
    group by day_utc, raid_group_id, hour_utc
),

of_raid_groups as (
    select
        raid_hours.day_utc, raid_hours.raid_group_id,
        kinds.kind
{%- for variant in variants %},
        {{ counted('raid_hours.' ~ variant ~ '_drive_count > 0') }} as {{ variant }}_raid_hours
{%- for rank in (1, 2, 3) %}
{%- for degree, edge in (('mild', mild), ('slow', slow)) %},
        {{ counted('raid_hours.' ~ variant ~ '_' ~ degree ~ '_drive_count >= ' ~ rank) }} as {{ variant }}_tail_{{ rank }}_{{ edge_name(edge) }}
{%- endfor %}
{%- endfor %}
{%- endfor %}
    from raid_hours
    inner join {{ source('intermediate', 'int_raid_groups__kinds') }} as kinds on raid_hours.raid_group_id = kinds.raid_group_id
    group by raid_hours.day_utc, raid_hours.raid_group_id, kinds.kind
)

-- the kind of a RAID group may be that of none of its drives that day
select
    coalesce(of_drives.day_utc, of_raid_groups.day_utc) as day_utc,
    coalesce(of_drives.raid_group_id, of_raid_groups.raid_group_id) as raid_group_id,
    coalesce(of_drives.kind, of_raid_groups.kind) as kind
{%- for variant in variants %}
{%- for hours in ('hours', 'slow_hours') %},
    coalesce(of_drives.{{ variant }}_{{ hours }}, 0) as {{ variant }}_{{ hours }}
{%- endfor %},
    coalesce(of_raid_groups.{{ variant }}_raid_hours, 0) as {{ variant }}_raid_hours
{%- for rank in (1, 2, 3) %}
{%- for degree, edge in (('mild', mild), ('slow', slow)) %}
{%- set tail = variant ~ '_tail_' ~ rank ~ '_' ~ edge_name(edge) %},
    coalesce(of_raid_groups.{{ tail }}, 0) as {{ tail }}
{%- endfor %}
{%- endfor %}
{%- endfor %}
{%- for hours in ('read_multiple', 'read_tick', 'write_multiple', 'write_tick', 'rate', 'rate_imbalanced', 'size', 'size_imbalanced') %},
    coalesce(of_drives.{{ hours }}_hours, 0) as {{ hours }}_hours
{%- endfor %}
from of_drives
full join of_raid_groups
    on of_drives.day_utc = of_raid_groups.day_utc
    and of_drives.raid_group_id = of_raid_groups.raid_group_id
    and of_drives.kind = of_raid_groups.kind
