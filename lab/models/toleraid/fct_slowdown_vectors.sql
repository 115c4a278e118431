-- The slowdowns of each distribution that were measured together. Grain: distribution_id, vector.
select distribution_id, vector, s, weight
from {{ source('toleraid', 'slowdown_vectors') }}
