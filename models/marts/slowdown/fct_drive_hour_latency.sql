{{ config(materialized='view') }}
{%- set percentiles = {'p50': 0.5, 'p99': 0.99, 'p999': 0.999} %}
-- Percentiles of the latencies of a drive-hour, each compared with those of its RAID group as the mean is; of hours whose histogram was delivered. Data
-- drives in a RAID group wide enough to have peers. Grain: drive_id, hour_utc.
with {{ named_spans("(select *, cast(null as timestamp) as collected_at from " ~ ref('stg_raw__drive_latencies') ~ ") as delivered") }},

named_counts as (
    select
        hour_utc,
        serial as drive_id,
        source, upper_us,
        -- paths to one drive add up, and spans that follow each other
        sum(io_count) as io_count,
        {{ source_rank('latency', 'source') }} as source_rank
    from seen_spans
    where serial is not null
    group by hour_utc, serial, source, upper_us
),

-- of several sources take the first in precedence
ranked_counts as (
    select *, dense_rank() over (partition by drive_id, hour_utc order by source_rank asc, source asc) as belief_rank
    from named_counts
),

reached_counts as (
    select
        drive_id, hour_utc, source, upper_us,
        cast(io_count as double) as io_count,
        cast(sum(io_count) over (partition by drive_id, hour_utc order by upper_us rows between unbounded preceding and current row) as double) as reached_count,
        cast(sum(io_count) over (partition by drive_id, hour_utc) as double) as total_count
    from ranked_counts
    where belief_rank = 1
),

-- within a bucket latencies lie evenly; its lower bound is half of its upper one
measured_hours as (
    select
        drive_id, hour_utc,
        max(source) as source,
        cast(max(total_count) as bigint) as io_count,
{%- for name, share in percentiles.items() %}
        max(
            case
                when reached_count >= {{ share }} * total_count and reached_count - io_count < {{ share }} * total_count
                    then upper_us / 2 * (1 + ({{ share }} * total_count - reached_count + io_count) / io_count)
            end
        ) as {{ name }}_latency_us{{ ',' if not loop.last }}
{%- endfor %}
    from reached_counts
    group by drive_id, hour_utc
),

placed_hours as (
    select
        measured_hours.*,
        drive_hours.raid_group_id, drive_hours.slowdown, drive_hours.is_slow, drive_hours.is_peer,
        raid_hours.slow_at
    from measured_hours
    inner join {{ ref('int_drive_hours') }} as drive_hours
        on measured_hours.drive_id = drive_hours.drive_id and measured_hours.hour_utc = drive_hours.hour_utc
    inner join {{ ref('int_raid_hours') }} as raid_hours
        on drive_hours.raid_group_id = raid_hours.raid_group_id and drive_hours.hour_utc = raid_hours.hour_utc
    where drive_hours.is_in_population
),

medians as (
    select
        raid_group_id, hour_utc,
{%- for name in percentiles %}
        {{ median_of_group(name ~ '_latency_us') }} as median_{{ name }}_latency_us,
{%- endfor %}
        count(*) as peer_count
    from placed_hours
    where is_peer
    group by raid_group_id, hour_utc
    having count(*) >= {{ var('min_reporting_drives') }}
),

compared_hours as (
    select
        placed_hours.*,
{%- for name in percentiles %}
        medians.median_{{ name }}_latency_us,
        case when placed_hours.is_peer then placed_hours.{{ name }}_latency_us / nullif(medians.median_{{ name }}_latency_us, 0.0) end as {{ name }}_slowdown,
{%- endfor %}
        medians.peer_count
    from placed_hours
    left join medians on placed_hours.raid_group_id = medians.raid_group_id and placed_hours.hour_utc = medians.hour_utc
)

select
    drive_id, hour_utc, raid_group_id, io_count,
{%- for name in percentiles %}
    {{ name }}_latency_us,
    median_{{ name }}_latency_us,
    {{ name }}_slowdown,
    coalesce({{ name }}_slowdown >= slow_at, false) as is_{{ name }}_slow,
{%- endfor %}
    slowdown, is_slow, source
from compared_hours
