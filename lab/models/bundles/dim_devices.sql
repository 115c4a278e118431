-- Devices of an experiment: what its manifest says, and where that is silent lsblk, smartctl or diskstats. Grain: experiment_id, device_id.
select
    devices.experiment_id, devices.device_id,
    {%- for column in ('kind', 'kernel_name', 'major_minor', 'vendor', 'model', 'firmware', 'serial', 'capacity_bytes', 'interface', 'rpm') %}
    coalesce(devices.{{ column }}, described.{{ column }}) as {{ column }},
    {%- endfor %}
    devices.flash_cell
from {{ source('lab', 'devices') }} as devices
inner join {{ ref('step_lab__manifests') }} using (experiment_id, delivery_seq)
left join {{ ref('step_lab__described_drives') }} as described using (experiment_id, device_id)
