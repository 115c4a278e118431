-- How far the fleet is, and the days up to then that `drivetail status` looks at. Grain: one row.
with spans as (
    select
        max(last_hour_utc) as last_hour_utc,
        count(*) as drive_count,
        count(distinct current_raid_group_id) as raid_group_count
    from {{ ref('int_drives') }}
    where last_hour_utc is not null
),

reached_hour as (
    select
        -- without a single valid RAID-hour the rows themselves say how far the fleet is
        coalesce(publication.last_hour_utc, spans.last_hour_utc) as last_hour_utc,
        spans.drive_count, spans.raid_group_count
    from {{ ref('publication') }} as publication
    cross join spans
),

bounds as (
    select
        case
            when last_hour_utc is not null
                then greatest(
                    last_hour_utc - interval {{ var('status_window_days') }} day + interval 1 hour,
                    timestamp '{{ var("beginning_of_time") }}' + interval 1 hour
                )
        end as first_hour_utc,
        last_hour_utc, drive_count, raid_group_count
    from reached_hour
)

select
    bounds.first_hour_utc, bounds.last_hour_utc, bounds.drive_count, bounds.raid_group_count
{%- for spans in ('path_spans', 'part_spans', 'other_spans', 'changed_spans') %},
    coalesce(cast(sum(merged.{{ spans }}) as bigint), 0) as {{ spans }}
{%- endfor %}
from bounds
-- the day on which the window begins counts whole
left join {{ ref('int_drive_days__merged') }} as merged on merged.day_utc >= cast(bounds.first_hour_utc as date)
group by bounds.first_hour_utc, bounds.last_hour_utc, bounds.drive_count, bounds.raid_group_count
