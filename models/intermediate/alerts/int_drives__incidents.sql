{{ config(meta={'made': 'each_build'}) }}
{%- set looks = 4 %}{#- hours shared only with drives that are left out do not count, so the others are tried again: rounds in all -#}
-- Incidents of the last four weeks: drives of one place, each of which shared most of its slow hours with others of them. Grain: drive_id.
with slow_counts as (
    select slow.drive_id, count(*) as slow_hours
    from {{ ref('int_drive_hours__evidence') }} as slow
    inner join {{ ref('stg_raw__publication') }} as publication on slow.hour_utc > publication.last_hour_utc - interval 28 day
    group by slow.drive_id
),

crowds_1 as (
    select together.drive_id, together.place_type, together.place_id, together.hour_utc, together.drive_count
    from {{ ref('int_drive_hours__together') }} as together
    inner join {{ ref('stg_raw__publication') }} as publication on together.hour_utc > publication.last_hour_utc - interval 28 day
),
{% for look in range(1, looks + 1) %}
shared_{{ look }} as (
    select crowds.drive_id, crowds.place_type, crowds.place_id, slow_counts.slow_hours, count(*) as shared_hours
    from crowds_{{ look }} as crowds
    inner join slow_counts on crowds.drive_id = slow_counts.drive_id
    where crowds.drive_count >= 2
    group by crowds.drive_id, crowds.place_type, crowds.place_id, slow_counts.slow_hours
    having 2 * count(*) > slow_counts.slow_hours
),
{% if not loop.last %}
crowds_{{ look + 1 }} as (
    select crowds.drive_id, crowds.place_type, crowds.place_id, crowds.hour_utc,
        count(*) over (partition by crowds.place_type, crowds.place_id, crowds.hour_utc) as drive_count
    from crowds_1 as crowds
    inner join shared_{{ look }} as shared
        on crowds.drive_id = shared.drive_id and crowds.place_type = shared.place_type and crowds.place_id = shared.place_id
),
{% endif %}
{%- endfor %}
counted_places as (
    select *, count(*) over (partition by place_type, place_id) as drive_count
    from shared_{{ looks }}
),

-- the narrowest place of those that have an incident
ranked_places as (
    select
        *,
        row_number() over (
            partition by drive_id
            order by case place_type when 'enclosure' then 1 when 'raid_group' then 2 else 3 end asc, shared_hours desc, place_id asc
        ) as row_rank
    from counted_places
    where drive_count >= 2
)

select drive_id, place_type, place_id, drive_count, shared_hours, slow_hours
from ranked_places
where row_rank = 1
