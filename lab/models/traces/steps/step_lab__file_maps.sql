-- The map of a file that stands in a run: of several the one that is listed last. Grain: experiment_id, config_id, phase, run_number, file_name.
select
    listings.experiment_id, listings.config_id, listings.phase, listings.run_number,
    maps.file_name, maps.delivery_seq, maps.listing, maps.map, maps.file_bytes, maps.block_bytes, maps.summary_extents
from {{ source('lab', 'file_maps') }} as maps
inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
qualify row_number() over (
    partition by listings.experiment_id, listings.config_id, listings.phase, listings.run_number, maps.file_name
    order by listings.listed_at desc, maps.map desc
) = 1
