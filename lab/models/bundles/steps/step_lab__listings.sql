-- The rows of runs.csv that stand: of each file those of its greatest revision. Grain: experiment_id, delivery_seq, listing.
with ranked_files as (
    select
        *,
        reason is null as is_accepted,
        -- what was refused before it was read is replaced by the file itself, whatever its revision
        dense_rank() over (partition by experiment_id, file order by sha256 is not null desc, revision desc) as place
    from {{ source('lab', 'files') }}
)

select
    experiment_id, delivery_seq, listing, file, revision, tool, config_id, phase, run_number,
    "pass",
    offset_s, device_id, process_count,
    -- which of two files with the same result stands: the one listed later
    row_number() over (partition by experiment_id order by revision asc, listing asc, file asc, listed_as asc) as listed_at
from ranked_files
where place = 1 and is_accepted
-- a file counts once for a run
qualify row_number() over (
    partition by experiment_id, file, tool, config_id, phase, run_number order by delivery_seq desc, listing desc
) = 1
