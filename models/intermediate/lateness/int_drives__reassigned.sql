-- Hours in which the inventory that has just arrived says something else of a drive than the inventory before it.
-- One row per stretch of hours and RAID group that gained or lost the drive (or saw its role change).
-- Grain: drive_id, raid_group_id, from_hour_utc.
-- Both sides are read from raw, not from what the last build left, so a build that was cut off loses nothing; only of drives that hosts see
-- the last build to finish left what it had made of them.
with retired_before as (
    select delivery_seq, file_no, row_no
    from {{ source('raw', 'retired_drives') }}
    where retired_by_delivery_seq not in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
),

changed_drives as (
    select drive_id
    from {{ source('raw', 'drives') }}
    where delivery_seq in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
    union
    select drive_id
    from {{ source('raw', 'retired_drives') }}
    where retired_by_delivery_seq in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
    union
    select drive_id from {{ ref('int_drives__host_periods') }}
    union
    select drive_id from {{ source('plan', 'counted_periods') }}
),

periods_before as (
    select
        delivered.drive_id,
        delivered.raid_group_id,
        coalesce(delivered.role, 'data') as role,
        false as is_mapped,
        coalesce(delivered.valid_from, timestamp '{{ var("beginning_of_time") }}') as valid_from,
        coalesce(date_trunc('hour', delivered.valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        coalesce(date_trunc('hour', delivered.valid_to), timestamp '{{ var("end_of_time") }}') as to_hour_utc
    from {{ source('raw', 'drives') }} as delivered
    where delivered.source is null
        and delivered.drive_id in (select drive_id from changed_drives)
        and delivered.drive_id not in (select drive_id from {{ source('plan', 'counted_periods') }})
        and delivered.delivery_seq not in (select delivery_seq from {{ source('plan', 'new_deliveries') }})
        and not exists (
            select 1
            from retired_before
            where retired_before.delivery_seq = delivered.delivery_seq
                and retired_before.file_no = delivered.file_no
                and retired_before.row_no = delivered.row_no
        )
    union all
    -- what several sources say of a drive was made one; the build remembers how
    select drive_id, raid_group_id, role, is_mapped, from_hour_utc as valid_from, from_hour_utc, to_hour_utc
    from {{ source('plan', 'counted_periods') }}
),

periods_now as (
    select
        drive_id,
        raid_group_id,
        role,
        is_mapped,
        coalesce(valid_from, timestamp '{{ var("beginning_of_time") }}') as valid_from,
        from_hour_utc,
        to_hour_utc
    from {{ ref('int_drives__periods') }}
    where drive_id in (select drive_id from changed_drives)
),

boundaries as (
    select drive_id, from_hour_utc as hour_utc from periods_before
    union
    select drive_id, to_hour_utc as hour_utc from periods_before
    union
    select drive_id, from_hour_utc as hour_utc from periods_now
    union
    select drive_id, to_hour_utc as hour_utc from periods_now
),

stretches as (
    select
        drive_id,
        hour_utc as from_hour_utc,
        lead(hour_utc) over (partition by drive_id order by hour_utc) as to_hour_utc
    from boundaries
),

{% for side in ('before', 'now') -%}
said_{{ side }} as (
    select
        stretches.drive_id,
        stretches.from_hour_utc,
        stretches.to_hour_utc,
        periods.raid_group_id,
        periods.role,
        periods.is_mapped,
        periods.valid_from
    from stretches
    inner join periods_{{ side }} as periods
        on stretches.drive_id = periods.drive_id
        and periods.from_hour_utc <= stretches.from_hour_utc
        and periods.to_hour_utc >= stretches.to_hour_utc
),

{% endfor -%}
differing as (
    (select * from said_before except select * from said_now)
    union
    (select * from said_now except select * from said_before)
),

differing_stretches as (
    select distinct drive_id, from_hour_utc from differing
)

-- where anything differs, every group either side names may have gained or lost the drive: with overlapping periods
-- the one that counts can change without its own record changing
select distinct said.drive_id, said.raid_group_id, said.from_hour_utc, said.to_hour_utc
from (
    select * from said_before
    union
    select * from said_now
) as said
inner join differing_stretches
    on said.drive_id = differing_stretches.drive_id and said.from_hour_utc = differing_stretches.from_hour_utc
