-- Each file of the bundles and what became of it. Grain: experiment_id, file, revision.
with ranked_files as (
    select
        *,
        dense_rank() over (partition by experiment_id, file order by sha256 is not null desc, revision desc) as place,
        -- a file that came after all is no longer missing
        dense_rank() over (partition by experiment_id, file, revision order by sha256 is not null desc) as kind_of_row
    from {{ source('lab', 'files') }}
)

select
    experiment_id, file, revision,
    min(tool) as tool,
    min(sha256) as sha256,
    case
        when min(place) > 1 then 'superseded'
        when bool_or(reason is null) then 'accepted'
        else 'rejected'
    end as status,
    case when not bool_or(reason is null) then min(reason) end as reason,
    case when not bool_or(reason is null) then min_by(message, reason) end as message,
    cast(sum(rows_parsed) as bigint) as rows_parsed,
    cast(sum(lines_rejected) as bigint) as lines_rejected,
    min(first_rejected) as first_rejected,
    min(notes) as notes,
    min(tool_version) as tool_version,
    min("bytes") as "bytes",
    min(ingested_at) as ingested_at
from ranked_files
where kind_of_row = 1
group by experiment_id, file, revision
