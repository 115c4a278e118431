-- How many drives were ever slow, and how many are now chronically so. Grain: kind.
select
    kind,
    count(*) as drive_count,
    count(case when is_acute then 1 end) as acute_drive_count,
    count(case when is_chronic then 1 end) as chronic_drive_count,
    count(case when is_acute and is_chronic then 1 end) as acute_chronic_drive_count
from {{ ref('fct_drive_slowness') }}
group by kind
