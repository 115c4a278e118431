-- Distributions that the slowdowns of tolerance runs are drawn from. Grain: distribution_id.
select distribution_id, name, kind, source, sha256, built_at, publication_id, width, vectors, parameters
from {{ source('toleraid', 'slowdown_distributions') }}
