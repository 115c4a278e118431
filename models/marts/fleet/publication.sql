-- Which publication this is. One row.
select publication_id, published_at, last_hour_utc from {{ source('plan', 'publication') }}
