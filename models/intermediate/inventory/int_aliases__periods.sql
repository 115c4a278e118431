-- Which drive an alias names, for all time without gap or overlap; the alias itself where nobody says. Grain: alias, from_hour_utc.
-- Where several periods cover an hour an operator's mapping counts, else the one that began last, else the source that is believed first.
-- An operator may also map one serial number to another; everything reported of the first then belongs to the second.
with claims as (
    select *, {{ valid_until('alias') }} as valid_until
    from {{ ref('stg_raw__drive_aliases') }}
),

-- over whole hours
held as (
    select
        claims.source,
        claims.alias,
        coalesce(joined.drive_id, claims.drive_id) as drive_id,
        claims.valid_from,
        claims.collected_at,
        coalesce(date_trunc('hour', claims.valid_from), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        coalesce(date_trunc('hour', claims.valid_until), timestamp '{{ var("end_of_time") }}') as to_hour_utc
    from claims
    left join claims as joined
        on claims.drive_id = joined.alias and joined.source = 'mapping' and joined.valid_from is null and claims.alias <> joined.alias
),

periods as (
    select * from held where from_hour_utc < to_hour_utc
),

boundaries as (
    select alias, from_hour_utc as hour_utc from periods
    union
    select alias, to_hour_utc as hour_utc from periods
    union
    select alias, timestamp '{{ var("beginning_of_time") }}' as hour_utc from periods
    union
    select alias, timestamp '{{ var("end_of_time") }}' as hour_utc from periods
),

stretches as (
    select alias, hour_utc, lead(hour_utc) over (partition by alias order by hour_utc) as next_hour_utc
    from boundaries
),

ranked as (
    select
        stretches.alias,
        coalesce(periods.drive_id, stretches.alias) as drive_id,
        stretches.hour_utc as from_hour_utc,
        row_number() over (
            partition by stretches.alias, stretches.hour_utc
            order by
                coalesce(periods.source = 'mapping', false) desc,
                periods.valid_from desc nulls last,
                {{ source_rank('description', 'periods.source') }} asc,
                periods.collected_at desc nulls last,
                periods.drive_id asc nulls last
        ) as period_rank
    from stretches
    left join periods
        on stretches.alias = periods.alias
        and periods.from_hour_utc <= stretches.hour_utc
        and periods.to_hour_utc >= stretches.next_hour_utc
    where stretches.next_hour_utc is not null
),

-- without gaps, so a period begins where another drive does
begun as (
    select alias, drive_id, from_hour_utc, lag(drive_id) over (partition by alias order by from_hour_utc) as previous_drive_id
    from ranked
    where period_rank = 1
)

select
    alias,
    drive_id,
    from_hour_utc,
    coalesce(
        lead(from_hour_utc) over (partition by alias order by from_hour_utc), timestamp '{{ var("end_of_time") }}'
    ) as to_hour_utc
from begun
where previous_drive_id is null or drive_id <> previous_drive_id
