{{ config(meta={'made': 'with_inventory'}) }}
-- Description of a drive at each hour by inventory: its attributes then, where dim_drives has those of now. Periods of a drive do not overlap:
-- where inventory claims several at once, the one that began last counts. Grain: drive_id, valid_from_utc.
with believed_segments as (
    select drive_id, valid_from, from_hour_utc as stretch_from_utc, to_hour_utc as stretch_to_utc
    from {{ ref('int_drives__segments') }}
    where is_believed
),

-- a period that is cut only because another one begins or ends, in which nobody believes, is one
{{ joined_stretches('believed_segments', 'drive_id', ['valid_from']) }}

select
    joined_periods.drive_id,
    nullif(joined_periods.from_hour_utc, timestamp '{{ var("beginning_of_time") }}') as valid_from_utc,
    nullif(joined_periods.to_hour_utc, timestamp '{{ var("end_of_time") }}') as valid_to_utc,
    periods.raid_group_id, periods.role, periods.slot, periods.kind, periods.vendor, periods.model, periods.firmware, periods.flash_cell,
    periods.capacity_bytes, periods.rpm, periods.interface, periods.host, periods.enclosure, periods.site, periods.timezone,
    periods.deployed_on
from joined_periods
inner join {{ ref('int_drives__periods') }} as periods
    on joined_periods.drive_id = periods.drive_id and joined_periods.valid_from is not distinct from periods.valid_from
