-- Drives that count as another kind, by another clock, of another age or another class, than when their hours were counted. Grain: drive_id.
select kinds.drive_id
from {{ ref('int_drives__kinds') }} as kinds
inner join {{ source('plan', 'counted_drives') }} as counted on kinds.drive_id = counted.drive_id
where kinds.kind <> counted.kind
    or kinds.timezone <> counted.timezone
    or kinds.drive_class <> counted.drive_class
    or coalesce(kinds.deployed_on, date '0001-01-01') <> coalesce(counted.deployed_on, date '0001-01-01')
