-- Reads and writes that belong to files, by direction, with the place of each among those of its file.
-- Grain: experiment_id, config_id, phase, run_number, file, device, direction, request_index.
select
    experiment_id, config_id, phase, run_number, file, device, direction, request_index, file_name, sector, sectors,
    row_number() over client as place,
    sum(sectors) over client as sectors_so_far,
    min(request_index) over client as first_request_index
from {{ ref('step_lab__accesses') }}
where file_name is not null
window client as (
    partition by experiment_id, config_id, phase, run_number, file, device, direction, file_name order by request_index asc
)
