-- Reads of files, from traces and from lists of reads. Grain: experiment_id, config_id, phase, run_number, file_name, read_index.
with spans as (
    select
        *,
        offset_s + queued_ns / 1e9 as from_s,
        offset_s + completed_ns / 1e9 as to_s,
        -- of the time since the request was queued, what no earlier request covers
        greatest(completed_ns - greatest(queued_ns, coalesce(
            max(completed_ns) over (
                partition by experiment_id, config_id, phase, run_number, file_name, read_index
                order by queued_ns asc, completed_ns asc, position asc
                rows between unbounded preceding and 1 preceding
            ), queued_ns
        )), 0) as covered_ns
    from {{ ref('step_lab__read_requests') }}
),

traced_reads as (
    select
        experiment_id, config_id, phase, run_number, file_name,
        0 as listed_at,
        read_index as place,
        cast(sum(sectors) * 512 as bigint) as "bytes",
        count(*) as requests,
        min(from_s) as started_s,
        max(to_s) as ended_s,
        sum(covered_ns) / 1e9 as active_seconds
    from spans
    group by experiment_id, config_id, phase, run_number, file_name, read_index
),

listed_reads as (
    select
        listings.experiment_id, listings.config_id, listings.phase, listings.run_number,
        reads.file_name,
        listings.listed_at,
        reads."row" as place,
        reads."bytes",
        cast(null as bigint) as requests,
        listings.offset_s + reads.started_s as started_s,
        listings.offset_s + reads.ended_s as ended_s,
        coalesce(reads.active_s, reads.ended_s - reads.started_s) as active_seconds
    from {{ source('lab', 'file_reads') }} as reads
    inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
)

select
    experiment_id, config_id, phase, run_number, file_name,
    -- the requests of a trace carry the numbers of their reads already; those of lists follow
    case
        when requests is not null then place
        else coalesce(max(place) filter (where requests is not null) over (
            partition by experiment_id, config_id, phase, run_number, file_name
        ), 0) + row_number() over (
            partition by experiment_id, config_id, phase, run_number, file_name, requests is not null
            order by started_s asc, listed_at asc, place asc
        )
    end as read_index,
    "bytes",
    requests, started_s, ended_s, active_seconds
from (select * from traced_reads union all select * from listed_reads) as found
