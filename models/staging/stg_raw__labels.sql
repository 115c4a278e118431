-- Labels, what a person found of each drive; the latest only. Grain: drive_id.
select delivered.drive_id, delivered.verdict, delivered.labelled_by, delivered.labelled_on
from {{ source('raw', 'labels') }} as delivered
where {{ is_live('labels', 'delivered') }}
