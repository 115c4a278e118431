-- Filesystems of an experiment. Grain: experiment_id, filesystem_id.
select
    filesystems.experiment_id,
    filesystems.filesystem_id,
    filesystems.device_id,
    filesystems.type,
    filesystems.block_bytes,
    filesystems.mount_options,
    filesystems.mkfs_options,
    filesystems.mount_point,
    filesystems.partition_start_sectors
from {{ source('lab', 'filesystems') }} as filesystems
inner join {{ ref('step_lab__manifests') }} as manifests
    on filesystems.experiment_id = manifests.experiment_id and filesystems.delivery_seq = manifests.delivery_seq
