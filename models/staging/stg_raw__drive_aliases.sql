-- Names under which hosts know drives, the losers of conflicts left out. Grain: source, alias, valid_from.
-- An operator may say of a serial number, too, which other one the drive goes by: then what was told of the one is of the other.
with told as (
    select *, {{ held_until('alias') }} as held_until
    from {{ source('raw', 'drive_aliases') }} as delivered
    where {{ is_live('drive_aliases', 'delivered') }}
)

select
    told.source,
    told.alias,
    coalesce(joined.drive_id, told.drive_id) as drive_id,
    told.valid_from,
    told.held_until as valid_to,
    told.collected_at,
    coalesce(date_trunc('hour', told.valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
    coalesce(date_trunc('hour', told.held_until), timestamp '{{ var("end_of_time") }}') as to_hour_utc
from told
left join told as joined
    on told.drive_id = joined.alias and joined.source = 'mapping' and joined.valid_from is null and told.alias <> joined.alias
