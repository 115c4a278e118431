-- Filesystems of an experiment: what its manifest says, and where that is silent lsblk. Grain: experiment_id, filesystem_id.
with filesystems as (
    select filesystems.*
    from {{ source('lab', 'filesystems') }} as filesystems
    inner join {{ ref('step_lab__manifests') }} using (experiment_id, delivery_seq)
),

-- what is mounted of the filesystem's drive, by the file that is listed last: described where it is one
mounted as (
    select
        filesystems.experiment_id, filesystems.filesystem_id,
        mounted.kernel_name, mounted.type, mounted.mount_point, mounted.partition_start_sectors
    from filesystems
    inner join {{ ref('dim_devices') }} as devices
        on filesystems.experiment_id = devices.experiment_id and filesystems.device_id = devices.device_id
    inner join {{ source('lab', 'mounted_filesystems') }} as mounted
        on devices.experiment_id = mounted.experiment_id
        and devices.kernel_name in (mounted.drive, mounted.kernel_name)
        and coalesce(filesystems.mount_point, mounted.mount_point) = mounted.mount_point
        and coalesce(filesystems.type, mounted.type) = mounted.type
    inner join {{ ref('step_lab__listings') }} as listings
        on mounted.experiment_id = listings.experiment_id
        and mounted.delivery_seq = listings.delivery_seq
        and mounted.listing = listings.listing
    qualify rank() over (partition by filesystems.experiment_id, filesystems.filesystem_id order by listings.listed_at desc) = 1
),

described as (
    select
        experiment_id, filesystem_id,
        min(type) as type,
        min(mount_point) as mount_point,
        min(partition_start_sectors) as partition_start_sectors
    from mounted
    group by experiment_id, filesystem_id
    having count(distinct kernel_name) = 1
)

select
    filesystems.experiment_id, filesystems.filesystem_id, filesystems.device_id,
    coalesce(filesystems.type, described.type) as type,
    filesystems.block_bytes, filesystems.mount_options, filesystems.mkfs_options,
    coalesce(filesystems.mount_point, described.mount_point) as mount_point,
    coalesce(filesystems.partition_start_sectors, described.partition_start_sectors, 0) as partition_start_sectors
from filesystems
left join described using (experiment_id, filesystem_id)
