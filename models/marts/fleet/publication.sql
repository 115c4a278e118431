{{ config(materialized='view') }}
-- Which publication this is. One row.
select publication_id, published_at, last_hour_utc, pruned_before_utc from {{ ref('stg_raw__publication') }}
