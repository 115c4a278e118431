{{ config(meta={'made': 'each_build'}) }}
-- Rows delivered so far and their outcome, over the whole warehouse. Grain: record_kind, one of them `all`.
with beaten_counts as (
    -- accepted when they came, beaten by a later delivery: they moved from accepted to superseded
    select record_kind, count(*) as row_count
    from {{ ref('stg_raw__retired_records') }}
    where reason = 'superseded' and delivery_seq < retired_by_delivery_seq
    group by record_kind
),

files as (
    select
        coalesce(record_kind, 'unknown') as record_kind,
        delivery_seq, status, ingested_at, rows_delivered, rows_accepted, rows_rejected, rows_duplicate, rows_superseded,
        row_number() over (partition by coalesce(record_kind, 'unknown') order by delivery_seq, file) as file_rank
    from {{ ref('ingested_files') }}
),

counted_files as (
    select
        files.*,
        case when files.file_rank = 1 then coalesce(beaten_counts.row_count, 0) else 0 end as rows_beaten
    from files
    left join beaten_counts on files.record_kind = beaten_counts.record_kind
),

labelled_files as (
    select * from counted_files
    union all
    select
        'all' as record_kind,
        delivery_seq, status, ingested_at, rows_delivered, rows_accepted, rows_rejected, rows_duplicate, rows_superseded, file_rank,
        rows_beaten
    from counted_files
)

select
    record_kind,
    count(distinct delivery_seq) as delivery_count,
    count(*) as file_count,
    count(case when status = 'unreadable' then 1 end) as unreadable_file_count,
    max(ingested_at) as last_ingested_at,
    cast(sum(rows_delivered) as bigint) as rows_delivered,
    cast(sum(rows_accepted) - sum(rows_beaten) as bigint) as rows_accepted,
    cast(sum(rows_rejected) as bigint) as rows_rejected,
    cast(sum(rows_duplicate) as bigint) as rows_duplicate,
    cast(sum(rows_superseded) + sum(rows_beaten) as bigint) as rows_superseded,
    coalesce(cast(sum(rows_accepted) - sum(rows_beaten) as double) / nullif(cast(sum(rows_delivered) as double), 0.0), 0.0) as accepted_ratio
from labelled_files
group by record_kind
