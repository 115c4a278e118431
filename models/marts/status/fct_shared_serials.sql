-- Serial numbers that name no drive, because several devices have them: those go by HOST/DEVICE. Grain: serial.
with measured_days as (
    select
        merged.shared_serial as serial,
        count(distinct merged.drive_id) as measured_device_count,
        cast(sum(merged.shared_hours) as bigint) as shared_hours
    from {{ ref('int_drive_days__merged') }} as merged
    inner join {{ ref('fct_status_window') }} as status_window on merged.day_utc >= cast(status_window.first_hour_utc as date)
    where merged.shared_serial is not null
    group by merged.shared_serial
),

claimed_serials as (
    select * from {{ ref('int_serials') }} where is_shared
),

devices as (
    select
        claims.drive_id as serial,
        claims.alias || case when claims.is_controller then 'n1' else '' end as device
    from {{ ref('int_names__claimed') }} as claims
    inner join claimed_serials on claims.drive_id = claimed_serials.drive_id
    where claims.is_device and claims.source <> 'mapping'
    union
    select shared_serial as serial, drive_id as device
    from {{ ref('int_drive_days__merged') }}
    where shared_serial is not null
),

device_names as (
    select serial, {{ joined_texts('device', ', ') }} as devices
    from devices
    group by serial
)

select
    coalesce(claimed_serials.drive_id, measured_days.serial) as serial,
    coalesce(claimed_serials.device_count, measured_days.measured_device_count) as device_count,
    claimed_serials.host_count, claimed_serials.wide_name_count,
    case
        when claimed_serials.drive_id is null then 'measured on several devices in one hour'
        when claimed_serials.is_described_differently then 'claimed by devices of different model or capacity'
        when claimed_serials.host_count > 1 then 'claimed by several hosts'
        when claimed_serials.wide_name_count > 1 then 'claimed by several devices, with several world wide names'
        else 'claimed by several devices at once, without a world wide name'
    end as reason,
    coalesce(measured_days.shared_hours, 0) as shared_hours,
    device_names.devices
from claimed_serials
full join measured_days on claimed_serials.drive_id = measured_days.serial
left join device_names on coalesce(claimed_serials.drive_id, measured_days.serial) = device_names.serial
