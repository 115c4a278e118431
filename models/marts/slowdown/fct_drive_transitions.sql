-- How drives pass between stable and slow from one hour to the next, in one RAID group. Grain: kind.
select
    drives.kind,
    cast(sum(totals.normal) as bigint) as normal,
    cast(sum(totals.to_slow) as bigint) as to_slow,
    cast(sum(totals.slow_persist) as bigint) as slow_persist,
    cast(sum(totals.back_to_stable) as bigint) as back_to_stable
from {{ ref('int_drives__totals') }} as totals
inner join {{ ref('dim_drives') }} as drives on totals.drive_id = drives.drive_id
where totals.normal + totals.to_slow + totals.slow_persist + totals.back_to_stable > 0
group by drives.kind
