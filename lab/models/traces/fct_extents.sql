-- Where the parts of a file lay in a run. Grain: experiment_id, config_id, phase, run_number, file_name, extent_index.
select
    maps.experiment_id, maps.config_id, maps.phase, maps.run_number, maps.file_name,
    extents.extent_index, extents.logical_start_bytes,
    coalesce(filesystems.partition_start_sectors, 0) + extents.physical_start_bytes // 512 as sector,
    extents.extent_bytes // 512 as sectors,
    extents.flags
from {{ ref('step_lab__file_maps') }} as maps
inner join {{ source('lab', 'extents') }} as extents
    on maps.experiment_id = extents.experiment_id and maps.delivery_seq = extents.delivery_seq
        and maps.listing = extents.listing and maps.map = extents.map
inner join {{ ref('dim_configs') }} as configs on maps.experiment_id = configs.experiment_id and maps.config_id = configs.config_id
left join {{ ref('dim_filesystems') }} as filesystems
    on configs.experiment_id = filesystems.experiment_id and configs.filesystem_id = filesystems.filesystem_id
