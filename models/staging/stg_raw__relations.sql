-- Relations of a publication. Grain: relation.
select relation, grain, made, as_of_hour_utc, row_count, overlap
from {{ source('raw', 'relations') }}
