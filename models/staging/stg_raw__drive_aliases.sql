-- Names under which hosts know drives, the losers of conflicts left out. Grain: source, alias, valid_from.
with told as (
    select *, {{ held_until('alias') }} as held_until
    from {{ source('raw', 'drive_aliases') }} as delivered
    where {{ is_live('drive_aliases', 'delivered') }}
)

select
    source,
    alias,
    drive_id,
    valid_from,
    held_until as valid_to,
    collected_at,
    coalesce(date_trunc('hour', valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
    coalesce(date_trunc('hour', held_until), timestamp '{{ var("end_of_time") }}') as to_hour_utc
from told
