-- Files that were delivered, and how each of their rows was judged when it came. Grain: source, file, sha256.
select * from {{ ref('stg_raw__ingested_files') }}
