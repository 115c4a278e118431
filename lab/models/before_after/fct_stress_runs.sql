{%- set lab_time_tolerance = 0.02 %}{#- bandwidth times time of a stress run is its size, to this share -#}
-- Operations that IOR summed up, with two checks of each summary against itself. Grain: experiment_id, config_id, phase, run_number, file, operation, test.
with runs as (
    select
        listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file,
        stress.operation,
        -- a file holds several where IOR ran several tests, or was called again
        row_number() over (
            partition by
                listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file,
                stress.operation
            order by stress."row" asc
        ) as test,
        stress.max_mib_per_s, stress.min_mib_per_s, stress.mean_mib_per_s, stress.sd_mib_per_s, stress.mean_seconds, stress.tasks,
        stress.repetitions, stress.segments, stress.block_bytes, stress.transfer_bytes,
        -- in double: a product of what somebody typed may be too large for bigint
        cast(stress.tasks as double) * stress.segments * stress.block_bytes as written_bytes,
        stress.aggregate_bytes as printed_bytes
    from {{ source('lab', 'stress_runs') }} as stress
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
)

select
    * exclude (written_bytes, printed_bytes),
    coalesce(printed_bytes, try_cast(written_bytes as bigint)) as aggregate_bytes,
    coalesce(printed_bytes, written_bytes) = written_bytes as is_size_consistent,
    abs(mean_mib_per_s * mean_seconds * 1048576 - coalesce(printed_bytes, written_bytes))
    <= {{ lab_time_tolerance }} * coalesce(printed_bytes, written_bytes) as is_time_consistent
from runs
