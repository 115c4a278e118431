-- Devices as lsblk, smartctl and diskstats describe them; of several files the one that is listed last. Grain: experiment_id, device_id.
with drives as (
    select
        drives.*,
        listings.listed_at,
        coalesce(listings.device_id, configs.device_id) as listed_device_id
    from {{ source('lab', 'drive_descriptions') }} as drives
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
    inner join {{ ref('dim_configs') }} as configs using (experiment_id, config_id)
)

select
    devices.experiment_id, devices.device_id,
    {%- for column in ('kind', 'kernel_name', 'major_minor', 'vendor', 'model', 'firmware', 'serial', 'capacity_bytes', 'interface', 'rpm') %}
    arg_max(drives.{{ column }}, { 'listed_at': drives.listed_at, 'row': drives."row" }) filter (where drives.{{ column }} is not null) as {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ source('lab', 'devices') }} as devices
inner join {{ ref('step_lab__manifests') }} using (experiment_id, delivery_seq)
inner join drives on devices.experiment_id = drives.experiment_id
    -- lsblk and diskstats list all drives of a machine; smartctl's file is of the one that runs.csv names
    and case
        when drives.kernel_name is null then devices.device_id = drives.listed_device_id
        else
            drives.kernel_name = devices.kernel_name
            or drives.serial = devices.serial
            -- a number alone says which drive it is, unless a name or serial contradicts it
            or (drives.major_minor = devices.major_minor and devices.kernel_name is null and devices.serial is null)
    end
group by devices.experiment_id, devices.device_id
