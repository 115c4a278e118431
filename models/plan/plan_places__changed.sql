{{ config(materialized='table', meta={'made': 'with_inventory'}) }}
-- Stretches of hours in which a drive's places differ from those that the last build used. Grain: drive_id, raid_group_id, from_hour_utc.
with places_now as (
    select place_type, drive_id, raid_group_id, role, from_hour_utc, to_hour_utc from {{ ref('plan_places') }}
),

places_before as (
    select place_type, drive_id, raid_group_id, role, from_hour_utc, to_hour_utc from {{ source('plan', 'last_places') }}
),

changed_drives as (
    select drive_id from (select * from places_now except select * from places_before) as gained
    union
    select drive_id from (select * from places_before except select * from places_now) as lost
),

-- a period that only grew has changed in the hours it gained: compare stretch by stretch
boundaries as (
    {%- for side in ('now', 'before') %}
    select drive_id, from_hour_utc as hour_utc from places_{{ side }} where drive_id in (select drive_id from changed_drives)
    union
    select drive_id, to_hour_utc as hour_utc from places_{{ side }} where drive_id in (select drive_id from changed_drives)
    {{- " union" if not loop.last }}
    {%- endfor %}
),

stretches as (
    select drive_id, hour_utc as from_hour_utc, lead(hour_utc) over (partition by drive_id order by hour_utc) as to_hour_utc
    from boundaries
),
{% for side in ('now', 'before') %}
said_{{ side }} as (
    select
        stretches.drive_id,
        places.place_type, places.raid_group_id, places.role,
        stretches.from_hour_utc, stretches.to_hour_utc
    from stretches
    inner join places_{{ side }} as places
        on stretches.drive_id = places.drive_id
        and places.from_hour_utc <= stretches.from_hour_utc
        and places.to_hour_utc >= stretches.to_hour_utc
),
{% endfor %}
differing_places as (
    (select * from said_now except select * from said_before)
    union
    (select * from said_before except select * from said_now)
)

select distinct drive_id, raid_group_id, from_hour_utc, to_hour_utc
from differing_places
