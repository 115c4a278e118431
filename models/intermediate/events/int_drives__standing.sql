{{ config(meta={'made': 'each_build'}) }}
-- Whether each drive still serves data where it was, has another role now, or is gone. Grain: drive_id.
-- where inventory had it last; a drive that no inventory places serves data where it reports
with places as (
    select
        segments.drive_id,
        max_by(segments.role, segments.from_hour_utc) as role,
        max(segments.to_hour_utc) as to_hour_utc
    from {{ ref('int_drives__segments') }} as segments
    inner join {{ ref('stg_raw__publication') }} as publication on segments.from_hour_utc <= publication.last_hour_utc
    where segments.is_believed
    group by segments.drive_id
)

select
    drives.drive_id,
    case
        when replaced.drive_id is not null then 'replaced'
        when places.drive_id is null then 'data'
        when places.to_hour_utc > publication.last_hour_utc then case when places.role = 'data' then 'data' else 'other role' end
        -- a drive that reports after the hour in which its period ended has not gone
        when places.to_hour_utc < drives.last_hour_utc then 'data'
        else 'gone'
    end as standing,
    places.role,
    replaced.replaced_at,
    drives.last_hour_utc
from {{ ref('int_drives') }} as drives
cross join {{ ref('stg_raw__publication') }} as publication
left join places on drives.drive_id = places.drive_id
left join {{ ref('int_drives__replaced') }} as replaced on drives.drive_id = replaced.drive_id
