-- Stretches in which an alias names another drive than when its hours were counted, under every drive that either side names.
-- Grain: drive_id, from_hour_utc, to_hour_utc.
with counted as (
    select alias, drive_id, from_hour_utc, to_hour_utc from {{ source('plan', 'counted_aliases') }}
),

boundaries as (
    select alias, from_hour_utc as hour_utc from counted
    union
    select alias, to_hour_utc as hour_utc from counted
    union
    select alias, from_hour_utc as hour_utc from {{ ref('int_aliases__periods') }}
    union
    select alias, to_hour_utc as hour_utc from {{ ref('int_aliases__periods') }}
),

stretches as (
    select
        alias,
        hour_utc as from_hour_utc,
        lead(hour_utc) over (partition by alias order by hour_utc) as to_hour_utc
    from boundaries
),

changed as (
    select
        stretches.from_hour_utc,
        stretches.to_hour_utc,
        -- an alias that nobody had explained stood for itself
        coalesce(counted.drive_id, stretches.alias) as drive_id_before,
        coalesce(periods.drive_id, stretches.alias) as drive_id_now
    from stretches
    left join counted
        on stretches.alias = counted.alias
        and counted.from_hour_utc <= stretches.from_hour_utc
        and counted.to_hour_utc >= stretches.to_hour_utc
    left join {{ ref('int_aliases__periods') }} as periods
        on stretches.alias = periods.alias
        and periods.from_hour_utc <= stretches.from_hour_utc
        and periods.to_hour_utc >= stretches.to_hour_utc
    where stretches.to_hour_utc is not null
        and coalesce(counted.drive_id, stretches.alias) <> coalesce(periods.drive_id, stretches.alias)
)

select drive_id_before as drive_id, from_hour_utc, to_hour_utc from changed
union
select drive_id_now as drive_id, from_hour_utc, to_hour_utc from changed
