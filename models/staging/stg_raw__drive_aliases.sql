-- Names under which hosts know drives, the losers of conflicts left out. Grain: source, alias, valid_from.
select
    delivered.source,
    delivered.alias,
    delivered.drive_id,
    delivered.valid_from,
    delivered.valid_to,
    delivered.collected_at,
    coalesce(date_trunc('hour', delivered.valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
    coalesce(date_trunc('hour', delivered.valid_to), timestamp '{{ var("end_of_time") }}') as to_hour_utc
from {{ source('raw', 'drive_aliases') }} as delivered
where {{ is_live('drive_aliases', 'delivered') }}
