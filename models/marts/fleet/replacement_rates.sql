{{ config(meta={'made': 'each_day'}) }}
{%- set rate_year_days = 365 %}{#- a drive-year of the replacement rate, as Backblaze counts -#}
{%- set most_told_rate = 1 %}{#- an interval that ends above it, once a year for each drive, says nothing worth reading -#}
-- Replacements per drive and year, by model, as Backblaze gives its drive stats. Grain: kind, vendor, model.
-- a drive that moves within a day has a row per RAID group
with reported_drives as (
    select drive_id, count(distinct day_utc) as drive_days
    from {{ ref('int_drive_days') }}
    group by drive_id
),

totals as (
    select
        drives.kind, drives.vendor, drives.model,
        count(*) as drive_count,
        cast(sum(reported_drives.drive_days) as bigint) as drive_days,
        count(replaced.drive_id) as replacement_count
    from reported_drives
    inner join {{ ref('int_drives') }} as drives on reported_drives.drive_id = drives.drive_id
    left join {{ ref('int_drives__replaced') }} as replaced on reported_drives.drive_id = replaced.drive_id
    group by drives.kind, drives.vendor, drives.model
),

limited_totals as (
    select
        totals.*,
        coalesce(limits.low, {{ poisson_low('cast(totals.replacement_count as double)') }}) as low_count,
        coalesce(limits.high, {{ poisson_high('cast(totals.replacement_count as double)') }}) as high_count
    from totals
    left join {{ ref('poisson_limits') }} as limits on totals.replacement_count = limits.event_count),

rates as (
    select
        kind, vendor, model, drive_count, drive_days, replacement_count,
        cast(replacement_count as double) * {{ rate_year_days }} / drive_days as annual_rate,
        low_count * {{ rate_year_days }} / drive_days as annual_rate_low,
        high_count * {{ rate_year_days }} / drive_days as annual_rate_high
    from limited_totals
)

select
    *,
    cast(replacement_count as string) || ' of ' || {{ counted_noun('drive_count', 'drive') }}
    || case
        when annual_rate_high > {{ most_told_rate }} then ' in ' || {{ counted_noun('drive_days', 'drive-day') }} || ': too few to say how many a year'
        when replacement_count = 0 then ': at most ' || {{ rounded_text('100 * annual_rate_high', 1) }} || '% a year'
        else ': ' || {{ rounded_text('100 * annual_rate', 1) }} || '% a year (' || {{ rounded_text('100 * annual_rate_low', 1) }} || ' to '
            || {{ rounded_text('100 * annual_rate_high', 1) }} || '%)'
    end as annual_rate_text
from rates
