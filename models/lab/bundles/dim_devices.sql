-- Devices of an experiment. Grain: experiment_id, device_id.
select
    devices.experiment_id,
    devices.device_id,
    devices.kind,
    devices.kernel_name,
    devices.major_minor,
    devices.vendor,
    devices.model,
    devices.firmware,
    devices.serial,
    devices.capacity_bytes,
    devices.interface,
    devices.flash_cell,
    devices.rpm
from {{ source('lab', 'devices') }} as devices
inner join {{ ref('step_lab__manifests') }} as manifests
    on devices.experiment_id = manifests.experiment_id and devices.delivery_seq = manifests.delivery_seq
