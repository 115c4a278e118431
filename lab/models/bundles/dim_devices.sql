-- Devices of an experiment: what its manifest says, and where that is silent lsblk, smartctl or diskstats. Grain: experiment_id, device_id.
select
    devices.experiment_id,
    devices.device_id,
    coalesce(devices.kind, described.kind) as kind,
    coalesce(devices.kernel_name, described.kernel_name) as kernel_name,
    coalesce(devices.major_minor, described.major_minor) as major_minor,
    coalesce(devices.vendor, described.vendor) as vendor,
    coalesce(devices.model, described.model) as model,
    coalesce(devices.firmware, described.firmware) as firmware,
    coalesce(devices.serial, described.serial) as serial,
    coalesce(devices.capacity_bytes, described.capacity_bytes) as capacity_bytes,
    coalesce(devices.interface, described.interface) as interface,
    devices.flash_cell,
    coalesce(devices.rpm, described.rpm) as rpm
from {{ source('lab', 'devices') }} as devices
inner join {{ ref('step_lab__manifests') }} as manifests using (experiment_id, delivery_seq)
left join {{ ref('step_lab__described_drives') }} as described using (experiment_id, device_id)
