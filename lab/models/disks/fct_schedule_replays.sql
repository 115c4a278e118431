{%- set lab_seek_seconds = 0.008 %}{#- that a seek costs in a replay -#}
{%- set lab_sequential_bytes_per_s = 100000000 %}{#- of a disk between seeks in a replay -#}
-- Seeks that would remain if files took turns of a unit at the disk. Grain: experiment_id, config_id, phase, run_number, file, device, direction, unit_bytes.
{%- set key = ['experiment_id', 'config_id', 'phase', 'run_number', 'file', 'device', 'direction'] %}
{%- set trace = key | join(', ') %}
with turned_accesses as (
    select accesses.*, units.turn
    from {{ ref('step_lab__file_accesses') }} as accesses
    asof inner join {{ ref('step_lab__replay_units') }} as units
        on accesses.experiment_id = units.experiment_id
        and accesses.config_id = units.config_id
        and accesses.phase = units.phase
        and accesses.run_number = units.run_number
        and accesses.file = units.file
        and accesses.device = units.device
        and accesses.direction = units.direction
        and accesses.file_name = units.file_name
        and accesses.place >= units.first_place
),

ordered_accesses as (
    select
        *,
        lag(sector + sectors) over (partition by {{ trace }} order by request_index asc) as end_before,
        lag(sector + sectors) over replay as end_after,
        lag(file_name) over replay as client_before,
        place = min(place) over (partition by {{ trace }}, file_name, turn) as is_first_of_unit
    from turned_accesses
    -- round robin: the first turn of each client, by first request, then the second
    window replay as (partition by {{ trace }} order by turn asc, first_request_index asc, request_index asc)
),

counted_accesses as (
    select
        experiment_id, config_id, phase, run_number, file, device, direction,
        count(distinct file_name) as clients,
        count(*) filter (where is_first_of_unit) as units,
        cast(sum(sectors) * 512 as bigint) as moved_bytes,
        count(*) filter (where sector <> end_before) as seeks_before,
        -- reads stay where they are; writes are laid where the turn puts them
        count(*) filter (where case when direction = 'read' then sector <> end_after else file_name <> client_before end) as seeks_after
    from ordered_accesses
    group by experiment_id, config_id, phase, run_number, file, device, direction
)

select
    * exclude (moved_bytes),
    cast({{ var('lab_unit_bytes') }} as bigint) as unit_bytes,
    {%- for when in ('before', 'after') %}
    moved_bytes / (1.0 + seeks_{{ when }}) as mean_run_bytes_{{ when }},
    moved_bytes / (
        seeks_{{ when }} * {{ lab_seek_seconds }} + cast(moved_bytes as double) / {{ lab_sequential_bytes_per_s }}
    ) as simulated_bandwidth_{{ when }}_bytes_per_s{{ ',' if not loop.last }}
    {%- endfor %}
from counted_accesses
