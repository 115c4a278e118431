-- The publication being made, and the hour before which drive-hours were pruned. One row.
select publication_id, published_at, last_hour_utc, pruned_before_utc
from {{ source('raw', 'publication') }}
