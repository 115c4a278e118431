{{ config(meta={'made': 'with_days'}) }}
-- A RAID group's width and medians in each hour, of data drives with enough coverage. Grain: raid_group_id, hour_utc.
{%- set latency_ns = capped_nanoseconds('peer_latency_us') %}
with drive_hours as (
    select
        *,
{%- for measure in ('latency_us', 'io_count', 'read_latency_us', 'write_latency_us') %}
        case when is_data_drive and is_covered then {{ measure }} end as peer_{{ measure }},
{%- endfor %}
        case when is_data_drive and is_covered then {{ io_size() }} end as peer_io_size_bytes
    from {{ ref('int_drive_hours__measured') }}
),

reported_hours as (
    select
        raid_group_id, hour_utc,
        count(*) as row_count,
        min(declared_kind) as declared_kind,
        count(case when is_data_drive and not coalesce(is_where_inventory_says, false) then 1 end) as unexpected_drive_count,
        count(case when is_data_drive and is_covered then 1 end) as covered_drive_count,
        count(peer_latency_us) as latency_count,
        {{ median_of_group('peer_latency_us') }} as median_latency_us,
        max(peer_latency_us) as max_latency_us,
        -- exact sums of squares cost much: doubles, with room for their rounding, say where they may be needed
        max({{ latency_ns }}) - avg({{ latency_ns }}) >= 0.99 * {{ var('sigma_multiple') }} * stddev_pop({{ latency_ns }}) as is_spread_out,
        count(peer_io_count) as io_count_count,
        min(peer_io_count) as min_io_count,
        cast(sum(peer_io_count) as bigint) as known_io_count,
        {{ median_of_group('cast(peer_io_count as double)') }} as median_io_count,
        {{ median_of_group('peer_io_size_bytes') }} as median_io_size_bytes,
        count(peer_read_latency_us) as read_latency_count,
        {{ median_of_group('peer_read_latency_us') }} as median_read_latency_us,
        count(peer_write_latency_us) as write_latency_count,
        {{ median_of_group('peer_write_latency_us') }} as median_write_latency_us
    from drive_hours
    group by raid_group_id, hour_utc
),

-- drives that inventory counts here but that report from another group
absent_hours as (
    select absent_from_raid_group_id as raid_group_id, hour_utc, count(*) as absent_drive_count
    from drive_hours
    where absent_from_raid_group_id is not null
    group by absent_from_raid_group_id, hour_utc
),

raid_hours as (
    select
        reported_hours.*,
        thresholds.slow_at, thresholds.mild_at, thresholds.min_judged_ios, thresholds.min_load_share,
        coalesce(steps.expected_drive_count, 0) + reported_hours.unexpected_drive_count
        - coalesce(absent_hours.absent_drive_count, 0) as data_drive_count,
        reported_hours.latency_count >= {{ var('min_reporting_drives') }} and reported_hours.median_latency_us > 0 as is_valid,
        case when reported_hours.io_count_count = reported_hours.covered_drive_count then reported_hours.known_io_count end as raid_io_count
    from reported_hours
    left join {{ ref('int_raid_groups__width_steps') }} as steps
        on reported_hours.raid_group_id = steps.raid_group_id
        and steps.from_hour_utc <= reported_hours.hour_utc
        and steps.to_hour_utc > reported_hours.hour_utc
    left join absent_hours on reported_hours.raid_group_id = absent_hours.raid_group_id and reported_hours.hour_utc = absent_hours.hour_utc
    left join {{ ref('int_raid_groups__attributes') }} as inventory on reported_hours.raid_group_id = inventory.raid_group_id
    inner join {{ ref('int_thresholds') }} as thresholds
        on thresholds.kind = coalesce(nullif(inventory.kind, 'unknown'), reported_hours.declared_kind, 'unknown')
),

-- hours in which some drive did too little to be compared: few but where boot drives and spares stand beside data drives
uneven_hours as (
    select raid_group_id, hour_utc, min_judged_ios, min_load_share
    from raid_hours
    where min_io_count < min_judged_ios or min_io_count < min_load_share * median_io_count
),

working_drives as (
    select
        drive_hours.*,
        uneven_hours.min_load_share * {{ median_of_group('cast(drive_hours.peer_io_count as double)', 'partition by drive_hours.raid_group_id, drive_hours.hour_utc') }} as least_like_ios
    from drive_hours
    inner join uneven_hours on drive_hours.raid_group_id = uneven_hours.raid_group_id and drive_hours.hour_utc = uneven_hours.hour_utc
    where drive_hours.peer_io_count is null or drive_hours.peer_io_count >= uneven_hours.min_judged_ios
),

-- the peers that are left: drives with as many I/Os, or of which nobody counts them
judged_hours as (
    select
        raid_group_id, hour_utc,
        max(least_like_ios) as least_like_ios,
        count(peer_latency_us) as latency_count,
        {{ median_of_group('peer_latency_us') }} as median_latency_us,
        max(peer_latency_us) as max_latency_us
    from working_drives
    where coalesce(peer_io_count >= least_like_ios, true)
    group by raid_group_id, hour_utc
)

select
    raid_hours.raid_group_id, raid_hours.hour_utc, raid_hours.row_count, raid_hours.covered_drive_count, raid_hours.data_drive_count,
    raid_hours.is_valid, raid_hours.latency_count, raid_hours.median_latency_us, raid_hours.max_latency_us, raid_hours.slow_at,
    raid_hours.mild_at, raid_hours.min_judged_ios, judged_hours.least_like_ios,
    case when uneven_hours.hour_utc is null then raid_hours.latency_count else coalesce(judged_hours.latency_count, 0) end as judged_latency_count,
    case when uneven_hours.hour_utc is null then raid_hours.median_latency_us else judged_hours.median_latency_us end as judged_median_latency_us,
    -- some drive is at least mildly slow, or was in the hour before, or may be an outlier by another rule (int_drive_hours__outlying)
    raid_hours.is_valid
    and (
        raid_hours.max_latency_us / raid_hours.median_latency_us >= least(raid_hours.mild_at, {{ least_outlying_slowdown() }})
        or raid_hours.is_spread_out
        or {{ may_be_fail_slow('raid_hours.max_latency_us', 'raid_hours.median_latency_us') }}
        or coalesce(judged_hours.max_latency_us / judged_hours.median_latency_us >= raid_hours.mild_at, false)
    )
    or coalesce(previous.is_valid and previous.max_latency_us / previous.median_latency_us >= raid_hours.mild_at, false) as is_notable,
    raid_hours.raid_io_count, raid_hours.median_io_count, raid_hours.median_io_size_bytes,
{%- for side in ('read', 'write') %}
    case when raid_hours.{{ side }}_latency_count >= {{ var('min_reporting_drives') }} then raid_hours.median_{{ side }}_latency_us end as median_{{ side }}_latency_us,
{%- endfor %}
    coalesce(previous.is_valid, false) as previous_is_valid,
    previous.median_latency_us as previous_median_latency_us,
    previous.max_latency_us as previous_max_latency_us,
    previous.covered_drive_count as previous_covered_drive_count,
    previous.raid_io_count as previous_raid_io_count
from raid_hours
left join raid_hours as previous
    on raid_hours.raid_group_id = previous.raid_group_id
    and raid_hours.hour_utc = previous.hour_utc + interval 1 hour
left join uneven_hours on raid_hours.raid_group_id = uneven_hours.raid_group_id and raid_hours.hour_utc = uneven_hours.hour_utc
left join judged_hours on raid_hours.raid_group_id = judged_hours.raid_group_id and raid_hours.hour_utc = judged_hours.hour_utc
