-- Serial numbers that name no drive, because several devices have them: those go by HOST/DEVICE. Grain: serial.
with measured as (
    select
        merged.shared_serial as serial,
        count(distinct merged.drive_id) as measured_device_count,
        cast(sum(merged.shared_hours) as bigint) as shared_hours
    from {{ ref('int_drive_days__merged') }} as merged
    inner join {{ ref('fct_status_window') }} as status_window on merged.day_utc >= cast(status_window.first_hour_utc as date)
    where merged.shared_serial is not null
    group by merged.shared_serial
),

claimed as (
    select * from {{ ref('int_serials') }} where is_shared
),

devices as (
    select
        claims.drive_id as serial,
        claims.alias || case when claims.is_controller then 'n1' else '' end as device
    from {{ ref('int_names__claimed') }} as claims
    inner join claimed on claims.drive_id = claimed.drive_id
    where claims.is_device and claims.source <> 'mapping'
    union
    select shared_serial as serial, drive_id as device
    from {{ ref('int_drive_days__merged') }}
    where shared_serial is not null
),

named as (
    select serial, {{ joined_texts('device', ', ') }} as devices
    from devices
    group by serial
)

select
    coalesce(claimed.drive_id, measured.serial) as serial,
    coalesce(claimed.device_count, measured.measured_device_count) as device_count,
    claimed.host_count, claimed.wide_name_count,
    case
        when claimed.drive_id is null then 'measured on several devices in one hour'
        when claimed.is_described_differently then 'claimed by devices of different model or capacity'
        when claimed.host_count > 1 then 'claimed by several hosts'
        when claimed.wide_name_count > 1 then 'claimed by several devices, with several world wide names'
        else 'claimed by several devices at once, without a world wide name'
    end as reason,
    coalesce(measured.shared_hours, 0) as shared_hours,
    named.devices
from claimed
full join measured on claimed.drive_id = measured.serial
left join named on coalesce(claimed.drive_id, measured.serial) = named.serial
