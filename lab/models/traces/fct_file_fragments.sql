-- How many extents a file had in a run. Grain: experiment_id, config_id, phase, run_number, file_name.
select
    maps.experiment_id, maps.config_id, maps.phase, maps.run_number, maps.file_name,
    count(extents.extent_index) as extent_count,
    cast(coalesce(sum(extents.extent_bytes), 0) as bigint) as allocated_bytes,
    avg(extents.extent_bytes) as mean_extent_bytes,
    min(maps.summary_extents) as summary_extents,
    min(maps.file_bytes) as file_bytes
from {{ ref('step_lab__file_maps') }} as maps
left join {{ source('lab', 'extents') }} as extents
    on maps.experiment_id = extents.experiment_id and maps.delivery_seq = extents.delivery_seq
        and maps.listing = extents.listing and maps.map = extents.map
group by maps.experiment_id, maps.config_id, maps.phase, maps.run_number, maps.file_name
