-- The drive that an alias names, for all time without gap or overlap; the alias itself where it is unknown. Grain: alias, from_hour_utc.
-- An operator may also map one serial number to another; everything reported of the first then belongs to the second.
with held as (
    -- over whole hours
    select
        claims.source, claims.alias,
        case
            when serials.is_shared and claims.source <> 'mapping' and claims.is_controller then claims.alias || 'n1'
            when serials.is_shared and claims.source <> 'mapping' and claims.is_device then claims.alias
            else claims.drive_id
        end as drive_id,
        claims.is_derived, claims.valid_from, claims.collected_at,
        coalesce(cast(date_trunc('hour', claims.valid_from) as timestamp), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        coalesce(cast(date_trunc('hour', claims.valid_until) as timestamp), timestamp '{{ var("end_of_time") }}') as to_hour_utc
    from {{ ref('int_aliases__claimed') }} as claims
    left join {{ ref('int_serials__claimed') }} as serials on claims.drive_id = serials.drive_id
),

{{ stretches('held', 'alias', is_all_time=true) }},

ranked as (
    select
        stretches.alias,
        coalesce(held.drive_id, stretches.alias) as drive_id,
        stretches.hour_utc as from_hour_utc,
        row_number() over (
            partition by stretches.alias, stretches.hour_utc
            order by
                held.source = 'mapping' desc,
                held.is_derived asc,
                held.valid_from desc nulls last,
                {{ source_rank('description', 'held.source') }} asc,
                held.collected_at desc nulls last,
                held.drive_id asc nulls last
        ) as period_rank
    from stretches
    left join held
        on stretches.alias = held.alias
        and held.from_hour_utc <= stretches.hour_utc
        and held.to_hour_utc >= stretches.next_hour_utc
    where stretches.next_hour_utc is not null
),

-- without gaps, so a period begins where another drive does
begun as (
    select alias, drive_id, from_hour_utc, lag(drive_id) over (partition by alias order by from_hour_utc) as previous_drive_id
    from ranked
    where period_rank = 1
)

select
    alias, drive_id, from_hour_utc,
    coalesce(
        lead(from_hour_utc) over (partition by alias order by from_hour_utc), timestamp '{{ var("end_of_time") }}'
    ) as to_hour_utc
from begun
where previous_drive_id is null or drive_id <> previous_drive_id
