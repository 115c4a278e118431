{{ config(meta={'made': 'with_inventory'}) }}
-- Description of a drive at each hour by inventory: its attributes then, where dim_drives has those of now. Periods of a drive do not overlap:
-- where inventory claims several at once, the one that began last counts. Grain: drive_id, valid_from_utc.
with segments as (
    select
        drive_id, valid_from, from_hour_utc, to_hour_utc,
        case
            when lag(to_hour_utc) over (partition by drive_id order by from_hour_utc) = from_hour_utc
                and (valid_from is not distinct from lag(valid_from) over (partition by drive_id order by from_hour_utc))
                then 0
            else 1
        end as is_beginning
    from {{ ref('int_drives__segments') }}
    where is_believed
),

-- a period that is cut only because another one begins or ends, in which nobody believes, is one
numbered as (
    select *, sum(is_beginning) over (partition by drive_id order by from_hour_utc) as span_no
    from segments
),

spans as (
    select drive_id, valid_from, min(from_hour_utc) as from_hour_utc, max(to_hour_utc) as to_hour_utc
    from numbered
    group by drive_id, valid_from, span_no
)

select
    spans.drive_id,
    nullif(spans.from_hour_utc, timestamp '{{ var("beginning_of_time") }}') as valid_from_utc,
    nullif(spans.to_hour_utc, timestamp '{{ var("end_of_time") }}') as valid_to_utc,
    periods.raid_group_id, periods.role, periods.slot, periods.kind, periods.vendor, periods.model, periods.firmware, periods.flash_cell,
    periods.capacity_bytes, periods.rpm, periods.interface, periods.host, periods.enclosure, periods.site, periods.timezone,
    periods.deployed_on
from spans
inner join {{ ref('int_drives__periods') }} as periods
    on spans.drive_id = periods.drive_id and spans.valid_from is not distinct from periods.valid_from
