{{ config(materialized='view') }}
-- Which drive each source says an alias names, over whole hours. Grain: source, alias, valid_from.
-- An operator may also map one serial number to another; everything reported of the first then belongs to the second.
with claims as (
    select *, {{ valid_until('alias') }} as valid_until
    from {{ ref('stg_raw__drive_aliases') }}
)

select
    claims.source,
    claims.alias,
    coalesce(joined.drive_id, claims.drive_id) as drive_id,
    claims.valid_from,
    claims.valid_until as valid_to,
    claims.collected_at,
    coalesce(date_trunc('hour', claims.valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
    coalesce(date_trunc('hour', claims.valid_until), timestamp '{{ var("end_of_time") }}') as to_hour_utc
from claims
left join claims as joined
    on claims.drive_id = joined.alias and joined.source = 'mapping' and joined.valid_from is null and claims.alias <> joined.alias
