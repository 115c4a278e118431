-- The publication being made, and the hour before which drive-hours were pruned. One row.
select
    publication.publication_id,
    publication.published_at,
    publication.last_hour_utc,
    pruned.before_utc as pruned_before_utc
from {{ source('plan', 'publication') }} as publication
cross join {{ source('plan', 'pruned') }} as pruned
