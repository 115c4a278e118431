-- How busy a device was in a run, by the counters of the kernel. Grain: experiment_id, config_id, phase, run_number, device.
{%- set counters = ['reads', 'sectors_read', 'read_ms', 'writes', 'sectors_written', 'write_ms', 'busy_ms'] %}
with devices as (
    select experiment_id, kernel_name
    from {{ ref('dim_devices') }}
    where kernel_name is not null
    group by experiment_id, kernel_name
),

snapshots as (
    select
        listings.experiment_id, listings.config_id, listings.phase, listings.run_number,
        snapshots.device,
        listings.offset_s + snapshots.at_s as at_s,
        {%- for counter in counters %}
        snapshots.{{ counter }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ source('lab', 'disk_snapshots') }} as snapshots
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    left join devices on listings.experiment_id = devices.experiment_id and snapshots.device = devices.kernel_name
    -- of what is made of other devices, such as loop and md, those that the experiment names
    where snapshots.is_whole_drive or devices.kernel_name is not null
    -- one snapshot that two files hold counts once
    qualify row_number() over (
        partition by
            listings.experiment_id, listings.config_id, listings.phase, listings.run_number,
            snapshots.device,
            listings.offset_s + snapshots.at_s
        order by listings.listed_at desc, snapshots."row" desc
    ) = 1
),

gained_counts as (
    select
        experiment_id, config_id, phase, run_number, device,
        at_s - lag(at_s) over run as observed_seconds,
        {%- for counter in counters %}
        {{ counter }} - lag({{ counter }}) over run as {{ counter }}{{ ',' if not loop.last }}
        {%- endfor %}
    from snapshots
    window run as (partition by experiment_id, config_id, phase, run_number, device order by at_s asc)
),

counted_intervals as (
    select
        experiment_id, config_id, phase, run_number, device,
        1 as preference,
        least({{ counters | join(', ') }}) < 0 as is_reset,
        observed_seconds,
        busy_ms / 1000.0 as busy_seconds,
        cast(reads as double) as reads,
        sectors_read * 512.0 as bytes_read,
        cast(writes as double) as writes,
        sectors_written * 512.0 as bytes_written
    from gained_counts
    where observed_seconds is not null
),

-- what sysstat measured in an interval is a rate already
measured_intervals as (
    select
        listings.experiment_id, listings.config_id, listings.phase, listings.run_number,
        intervals.device,
        case when listings.tool = 'iostat' then 2 else 3 end as preference,
        false as is_reset,
        intervals.seconds as observed_seconds,
        intervals.busy_ratio * intervals.seconds as busy_seconds,
        intervals.reads_per_s * intervals.seconds as reads,
        intervals.read_bytes_per_s * intervals.seconds as bytes_read,
        intervals.writes_per_s * intervals.seconds as writes,
        intervals.write_bytes_per_s * intervals.seconds as bytes_written
    from {{ source('lab', 'disk_intervals') }} as intervals
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    qualify row_number() over (
        partition by
            listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.tool,
            intervals.device,
            listings.offset_s + intervals.ended_s
        order by listings.listed_at desc, intervals."row" desc
    ) = 1
),

-- of several tools that saw one device in one run, one counts
preferred_intervals as (
    select *
    from (select * from counted_intervals union all select * from measured_intervals) as found
    qualify preference = min(preference) over (partition by experiment_id, config_id, phase, run_number, device)
),

totals as (
    select
        experiment_id, config_id, phase, run_number, device,
        coalesce({{ of_sample('sum', 'observed_seconds', 'not is_reset') }}, 0) as observed_seconds,
        {%- for sum in ('busy_seconds', 'reads', 'bytes_read', 'writes', 'bytes_written') %}
        {{ of_sample('sum', sum, 'not is_reset') }} as {{ sum }},
        {%- endfor %}
        count(*) filter (where is_reset) as resets
    from preferred_intervals
    group by experiment_id, config_id, phase, run_number, device
)

select
    experiment_id, config_id, phase, run_number, device, observed_seconds,
    coalesce(busy_seconds, case when observed_seconds = 0 then 0 end) as busy_seconds,
    busy_seconds / nullif(observed_seconds, 0) as utilisation,
    cast(round(reads) as bigint) as reads,
    cast(round(bytes_read) as bigint) as bytes_read,
    cast(round(writes) as bigint) as writes,
    cast(round(bytes_written) as bigint) as bytes_written,
    resets,
    case when resets = 0 then bytes_written = 0 end as is_write_free
from totals
