-- Drives that are not judged, by host and reason. Grain: host, reason.
with unjudged_drives as (
    select coalesce(host, 'unknown') as host, unjudged_reason as reason, name
    from {{ ref('fct_judged_drives') }}
    where unjudged_reason is not null
)

select
    host, reason,
    count(*) as drive_count,
    {{ joined_texts('name', ', ') }} as drives
from unjudged_drives
group by host, reason
